from __future__ import annotations

from broker_engine.metadata.liveness import Liveness
from tests.broker_engine.metadata.builders import after, broker, cluster


def test_a_session_ends_without_heartbeats() -> None:
    liveness = Liveness(9000)
    liveness.touch(1, 5, 0)
    liveness.touch(2, 6, 4000)
    assert liveness.expired(8999) == []
    assert liveness.next_expiry_ms() == 9000
    assert liveness.expired(9000) == [(1, 5)]
    assert (liveness.is_alive(1, 9000), liveness.is_alive(2, 9000)) == (False, True)
    liveness.forget(1, 5)
    assert liveness.expired(9000) == []


def test_forgetting_a_former_life_keeps_the_present_one() -> None:
    liveness = Liveness(9000)
    liveness.touch(1, 8, 0)
    liveness.forget(1, 5)
    assert liveness.expired(9000) == [(1, 8)]


def test_a_new_controller_gives_everybody_a_full_session() -> None:
    image = cluster(2, broker(3, fenced=True))
    liveness = Liveness(9000)
    liveness.touch(7, 1, 0)
    liveness.on_leadership(image, 100_000)
    assert liveness.expired(108_999) == []
    assert liveness.expired(109_000) == [(1, image.brokers[1].epoch), (2, image.brokers[2].epoch)]


def test_a_fenced_broker_returns_when_it_has_seen_who_leads_in_its_place() -> None:
    liveness = Liveness(9000)
    assert not liveness.has_caught_up(1, 5, 40, 60)
    assert not liveness.has_caught_up(1, 5, 59, 99), "no more is asked of it than at first, or it might never return"
    assert liveness.has_caught_up(1, 5, 60, 120)
    liveness.note_unfenced(1)
    assert not liveness.has_caught_up(1, 5, 61, 130), "it was fenced again"
    assert not liveness.has_caught_up(1, 131, 130, 131), "another life"
    assert liveness.has_caught_up(1, 131, 131, 140)


def test_a_stopping_broker_waits_until_the_others_know() -> None:
    image = cluster(3)
    liveness = Liveness(9000)
    liveness.on_leadership(image, 0)
    assert not liveness.has_everybody_reached(image, 10, but=1)
    liveness.touch(2, 1, 0, metadata_offset=10)
    assert not liveness.has_everybody_reached(image, 10, but=1)
    liveness.touch(3, 2, 0, metadata_offset=11)
    assert liveness.has_everybody_reached(image, 10, but=1)
    assert liveness.has_everybody_reached(after(image, [broker(9, fenced=True)]), 10, but=1)
    assert Liveness(9000).next_expiry_ms() is None
