"""Clients are told of a broker for some seconds after it left, so that one that restarts is never left out."""

from __future__ import annotations

from broker_engine.metadata.image import EMPTY_IMAGE, MetadataImage
from broker_engine.metadata.records import BrokerChangeRecord
from broker_engine.server.departures import LEFT_LATELY_MS, Departures
from tests.broker_engine.metadata.builders import after, broker, cluster

VICTIM = 2


def fenced(image: MetadataImage, *, is_fenced: bool = True) -> MetadataImage:
    epoch = image.brokers[VICTIM].epoch
    return after(image, [BrokerChangeRecord(broker_id=VICTIM, broker_epoch=epoch, fenced=is_fenced)])


def test_a_broker_that_was_fenced_counts_for_some_seconds_more() -> None:
    departures, image = Departures(), cluster(3)
    departures.follow(image, fenced(image), now_ms=1_000)
    assert departures.is_recent(VICTIM, 1_000 + LEFT_LATELY_MS - 1)
    assert not departures.is_recent(VICTIM, 1_000 + LEFT_LATELY_MS)
    assert not departures.is_recent(1, 1_000)


def test_a_new_process_that_is_not_yet_let_in_counts_from_when_the_last_one_left() -> None:
    departures, image = Departures(), cluster(3)
    gone = fenced(image)
    departures.follow(image, gone, now_ms=1_000)
    registered = after(gone, [broker(VICTIM, fenced=True)])
    departures.follow(gone, registered, now_ms=2_000)
    assert departures.is_recent(VICTIM, 1_000 + LEFT_LATELY_MS - 1)
    assert not departures.is_recent(VICTIM, 1_000 + LEFT_LATELY_MS)


def test_a_process_that_is_followed_by_another_before_anybody_noticed_counts_too() -> None:
    departures, image = Departures(), cluster(3)
    departures.follow(image, after(image, [broker(VICTIM, fenced=True)]), now_ms=1_000)
    assert departures.is_recent(VICTIM, 1_001)


def test_one_that_came_back_and_leaves_again_counts_anew() -> None:
    departures, image = Departures(), cluster(3)
    gone = fenced(image)
    back = fenced(gone, is_fenced=False)
    for old, new, now_ms in ((image, gone, 1_000), (gone, back, 2_000), (back, fenced(back), 9_000)):
        departures.follow(old, new, now_ms)
    assert departures.is_recent(VICTIM, 9_000 + LEFT_LATELY_MS - 1)


def test_a_node_that_has_just_started_knows_of_nobody_who_left() -> None:
    departures, image = Departures(), fenced(cluster(3))
    departures.follow(EMPTY_IMAGE, image, now_ms=1_000)
    assert not departures.is_recent(VICTIM, 1_000)
