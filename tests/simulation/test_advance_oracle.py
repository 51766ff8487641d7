"""The oracle of high watermarks counts for itself: it names who lacks what, and says nothing of what is right."""

from __future__ import annotations

from broker_engine.partition.core import AckDurability, PartitionCore, PartitionSettings
from broker_engine.simulator.advance_oracle import AdvanceOracle, problems_of_advance

LEADER, SECOND, THIRD = 1, 2, 3


def leader_of(isr: tuple[int, ...], *, durability: AckDurability = AckDurability.PAGE_CACHE) -> PartitionCore:
    """Ten records, of which nobody has fetched any."""
    return PartitionCore(
        leader_epoch=4,
        replicas=(LEADER, SECOND, THIRD),
        isr=isr,
        log_start_offset=0,
        log_end_offset=10,
        durable_end_offset=10,
        high_watermark=0,
        settings=PartitionSettings(min_insync_replicas=2, ack_durability=durability),
    )


def test_what_a_leader_does_right_is_not_told() -> None:
    found: list[str] = []
    with AdvanceOracle(lambda rule, text: found.append(rule)).watching():
        core = leader_of((LEADER, SECOND, THIRD))
        core.on_follower_fetch(SECOND, 1, 10, 10, 0)
        core.on_follower_fetch(THIRD, 1, 7, 7, 0)
    assert core.high_watermark == 7
    assert found == []


def test_who_has_not_fetched_in_this_term_is_named() -> None:
    core = leader_of((LEADER, SECOND, THIRD))
    core.on_follower_fetch(SECOND, 1, 10, 10, 0)
    core.high_watermark = 9
    assert list(problems_of_advance(core)) == ["node 3 has fetched to -1"]


def test_what_a_follower_has_not_synced_does_not_count() -> None:
    core = leader_of((LEADER, SECOND), durability=AckDurability.FSYNC)
    core.on_follower_fetch(SECOND, 1, 10, 6, 0)
    core.high_watermark = 10
    assert list(problems_of_advance(core)) == ["node 2 has fetched to 6"]


def test_too_few_in_sync_commit_nothing() -> None:
    core = leader_of((LEADER,))
    core.high_watermark = 5
    assert list(problems_of_advance(core)) == ["2 are needed"]
