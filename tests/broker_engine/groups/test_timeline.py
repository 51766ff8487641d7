"""What a group remembers of its rebalances."""

from __future__ import annotations

from broker_engine.groups.timeline import EVENTS_KEPT, EventKind, Timeline, moved_count


def test_a_rebalance_says_how_long_it_took_and_what_moved() -> None:
    timeline = Timeline()
    timeline.begin(1_000, {("orders", 0): "a", ("orders", 1): "a"})
    timeline.begin(1_500, {})
    timeline.settle(3_000, 4, {("orders", 0): "a", ("orders", 1): "b"})
    (event,) = timeline.events
    assert (event.kind, event.generation, event.duration_ms, event.partitions_moved) == (
        EventKind.REBALANCED,
        4,
        2_000,
        1,
    )
    assert event.wall_ms(now_ms=3_500, now_wall_ms=100_000) == 99_500
    timeline.settle(9_000, 5, {})
    assert len(timeline.events) == 1, "nothing was under way"


def test_what_had_no_owner_does_not_move_and_what_cannot_be_read_is_not_guessed() -> None:
    assert moved_count({}, {1: "a"}) == 0
    assert moved_count({1: "a"}, {}) == 1
    assert moved_count(None, {1: "a"}) is None


def test_only_the_newest_events_are_kept() -> None:
    timeline = Timeline()
    for number in range(EVENTS_KEPT + 10):
        timeline.note(EventKind.JOINED, number, 1, f"m-{number}")
    assert len(timeline.events) == EVENTS_KEPT
    assert timeline.events[-1].member_id == f"m-{EVENTS_KEPT + 9}"
