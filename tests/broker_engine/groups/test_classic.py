"""A classic group, story by story. What Kafka 4.3.1 answered decides where the stories could go either way."""

from __future__ import annotations

from broker_engine.errors import ErrorCode
from broker_engine.groups.consumer_protocol import write_assignment
from broker_engine.groups.states import GroupState
from tests.broker_engine.groups.members import INITIAL_DELAY_MS, REBALANCE_MS, SESSION_MS, Bench, stable

# --- rebalancing


def test_a_newcomer_makes_everybody_join_again() -> None:
    bench, ids = stable("a", "b")
    bench.join("c")
    assert bench.heartbeat(ids["a"]) is ErrorCode.REBALANCE_IN_PROGRESS
    bench.join("a", ids["a"])
    bench.join("b", ids["b"])
    assert bench.joined("c").generation == 2
    assert bench.heartbeat(ids["a"], generation=1) is ErrorCode.ILLEGAL_GENERATION


def test_a_follower_that_joins_again_unchanged_gets_the_present_generation() -> None:
    bench, ids = stable("a", "b")
    answer = bench.join("b", ids["b"])
    assert answer is not None
    assert (answer.code, answer.generation, bench.group.state) == (ErrorCode.NONE, 1, GroupState.STABLE)


def test_a_leader_that_joins_again_or_a_follower_with_other_topics_begins_a_rebalance() -> None:
    for who, change in (("a", {}), ("b", {"protocols": "range sticky"})):
        bench, ids = stable("a", "b")
        assert bench.join(who, ids[who], **change) is None
        assert bench.group.state is GroupState.PREPARING_REBALANCE


def test_who_does_not_come_in_the_rebalance_time_is_left_behind() -> None:
    bench, ids = stable("a", "b")
    bench.join("c", session_timeout_ms=REBALANCE_MS * 2)
    for _ in range(12):
        bench.wait(REBALANCE_MS // 12)
        bench.heartbeat(ids["a"])
        bench.heartbeat(ids["b"])
    joined = bench.joined("c")
    assert [member_id for member_id, _, _ in joined.members] == [joined.member_id]


def test_who_joined_and_never_syncs_is_left_behind_too() -> None:
    bench = Bench()
    bench.join("a")
    bench.join("b")
    bench.wait(2 * INITIAL_DELAY_MS)
    a, b = bench.joined("a"), bench.joined("b")
    bench.sync("b", b.member_id)
    for _ in range(13):
        bench.wait(REBALANCE_MS // 12)
        bench.heartbeat(a.member_id)
    assert bench.synced("b").code is ErrorCode.REBALANCE_IN_PROGRESS
    assert a.member_id not in bench.group.members


def test_who_never_syncs_is_left_behind_also_when_the_others_have_their_parts() -> None:
    bench = Bench()
    bench.join("a")
    bench.join("b")
    bench.wait(2 * INITIAL_DELAY_MS)
    a, b = bench.joined("a").member_id, bench.joined("b").member_id
    bench.sync("a", a, {a: b"a", b: b"b"})
    bench.stored()
    assert bench.synced("a").code is ErrorCode.NONE
    for _ in range(13):
        bench.wait(REBALANCE_MS // 12)
        bench.heartbeat(a)
        bench.heartbeat(b)
    assert (list(bench.group.members), bench.group.state) == ([a], GroupState.PREPARING_REBALANCE)


def test_a_late_sync_keeps_its_member() -> None:
    bench = Bench()
    bench.join("a")
    bench.join("b")
    bench.wait(2 * INITIAL_DELAY_MS)
    a, b = bench.joined("a").member_id, bench.joined("b").member_id
    bench.sync("a", a, {a: b"a", b: b"b"})
    bench.stored()
    bench.sync("b", b)
    for _ in range(13):
        bench.wait(REBALANCE_MS // 12)
        bench.heartbeat(a)
        bench.heartbeat(b)
    assert (list(bench.group.members), bench.group.state) == ([a, b], GroupState.STABLE)


def test_silence_for_a_session_ends_a_membership() -> None:
    bench, ids = stable("a", "b")
    for _ in range(3):
        bench.wait(SESSION_MS // 2)
        bench.heartbeat(ids["a"])
    assert bench.heartbeat(ids["b"]) is ErrorCode.UNKNOWN_MEMBER_ID
    assert bench.heartbeat(ids["a"]) is ErrorCode.REBALANCE_IN_PROGRESS


def test_a_member_that_waits_is_not_silent() -> None:
    bench, ids = stable("a", "b")
    bench.join("a", ids["a"])
    for _ in range(4):
        bench.wait(SESSION_MS // 2)
        bench.heartbeat(ids["b"])
    assert ids["a"] in bench.group.members


# --- assignment


def test_nobody_learns_its_part_before_it_is_stored() -> None:
    bench = Bench()
    bench.join("a")
    bench.wait(INITIAL_DELAY_MS)
    a = bench.joined("a")
    bench.sync("a", a.member_id, {a.member_id: b"all"})
    assert bench.answers == {}
    bench.stored()
    assert bench.synced("a").assignment == b"all"


def test_an_assignment_that_cannot_be_stored_is_told_to_nobody_and_made_again() -> None:
    bench = Bench()
    bench.join("a")
    bench.wait(INITIAL_DELAY_MS)
    a = bench.joined("a")
    bench.sync("a", a.member_id, {a.member_id: b"all"})
    bench.stored(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    assert bench.synced("a").code is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert bench.group.state is GroupState.PREPARING_REBALANCE


def test_whom_the_leader_left_out_gets_nothing_and_no_error() -> None:
    bench = Bench()
    bench.join("a")
    bench.join("b")
    bench.wait(2 * INITIAL_DELAY_MS)
    a, b = bench.joined("a"), bench.joined("b")
    bench.sync("b", b.member_id)
    bench.sync("a", a.member_id, {a.member_id: b"all"})
    bench.stored()
    assert (bench.synced("b").code, bench.synced("a").assignment) == (ErrorCode.NONE, b"all")


def test_a_sync_that_comes_late_is_answered_at_once() -> None:
    bench, ids = stable("a", "b")
    bench.sync("b", ids["b"])
    assert bench.synced("b").assignment == b"b"


def test_a_sync_of_another_protocol_generation_or_member_is_refused() -> None:
    bench, ids = stable("a")
    bench.sync("a", ids["a"], protocol=("consumer", "sticky"))
    assert bench.synced("a").code is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    bench.sync("a", ids["a"], generation=7)
    assert bench.synced("a").code is ErrorCode.ILLEGAL_GENERATION
    bench.sync("a", "nobody")
    assert bench.synced("a").code is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_newcomer_during_the_assignment_calls_everybody_back() -> None:
    bench = Bench()
    bench.join("a")
    bench.wait(INITIAL_DELAY_MS)
    a = bench.joined("a")
    bench.sync("a", a.member_id, {a.member_id: b"all"})
    bench.join("b")
    assert bench.synced("a").code is ErrorCode.REBALANCE_IN_PROGRESS
    bench.stored()
    assert bench.answers == {}, "the assignment of a generation that is over is nobody's"


# --- leaving


def test_the_last_one_to_leave_leaves_an_empty_group_in_a_new_generation() -> None:
    bench, ids = stable("a")
    assert bench.leave(ids["a"]) is ErrorCode.NONE
    assert (bench.group.state, bench.group.generation) == (GroupState.EMPTY, 2)
    assert bench.stores[-1].generation == 2


def test_when_the_leader_leaves_another_member_leads() -> None:
    bench, ids = stable("a", "b")
    bench.leave(ids["a"])
    answer = bench.join("b", ids["b"])
    assert answer is not None
    assert answer.leader == ids["b"]


def test_who_is_not_there_cannot_leave() -> None:
    bench, ids = stable("a")
    assert bench.leave("nobody") is ErrorCode.UNKNOWN_MEMBER_ID
    assert bench.leave(ids["a"]) is ErrorCode.NONE
    assert bench.leave(ids["a"]) is ErrorCode.UNKNOWN_MEMBER_ID


# --- commits


def test_offsets_are_committed_by_a_member_in_its_generation_or_while_nobody_is_there() -> None:
    bench, ids = stable("a")
    commit = bench.group.check_commit
    assert commit(ids["a"], None, 1, bench.now_ms) is ErrorCode.NONE
    assert commit(ids["a"], None, 0, bench.now_ms) is ErrorCode.ILLEGAL_GENERATION
    assert commit("nobody", None, 1, bench.now_ms) is ErrorCode.UNKNOWN_MEMBER_ID
    assert commit("", None, -1, bench.now_ms) is ErrorCode.UNKNOWN_MEMBER_ID
    bench.join("b")
    assert commit(ids["a"], None, 1, bench.now_ms) is ErrorCode.NONE, "what was read before the rebalance counts"
    bench.join("a", ids["a"])
    assert commit(ids["a"], None, 2, bench.now_ms) is ErrorCode.REBALANCE_IN_PROGRESS
    empty = Bench()
    assert empty.group.check_commit("", None, -1, 0) is ErrorCode.NONE


def test_whoever_waits_when_the_coordinator_moves_is_told_to_look_elsewhere() -> None:
    bench, ids = stable("a", "b")
    bench.join("c")
    bench.join("a", ids["a"])
    bench._take(bench.group.end(ErrorCode.NOT_COORDINATOR))
    assert bench.joined("a").code is bench.joined("c").code is ErrorCode.NOT_COORDINATOR


# --- what it remembers


def test_the_timeline_says_who_came_and_went_and_how_long_it_took() -> None:
    bench, ids = stable("a", "b")
    bench.leave(ids["b"])
    bench.wait(500)
    bench.join("a", ids["a"])
    bench.sync("a", ids["a"], {ids["a"]: write_assignment({"orders": [0]}, 1)})
    bench.stored()
    events = [(event.kind.value, event.client_id, event.generation) for event in bench.group.timeline.events]
    assert events == [
        ("joined", "a", 0),
        ("joined", "b", 0),
        ("rebalanced", "", 1),
        ("left", "b", 1),
        ("rebalanced", "", 2),
    ]
    last = bench.group.timeline.events[-1]
    assert last.duration_ms == 500
    assert last.partitions_moved is None, "what the members held before were no assignments of consumers"


def test_the_timeline_counts_partitions_that_changed_hands() -> None:
    bench = Bench()
    bench.join("a")
    bench.wait(INITIAL_DELAY_MS)
    member_id = bench.joined("a").member_id
    bench.sync("a", member_id, {member_id: write_assignment({"orders": [0, 1, 2]}, 1)})
    bench.stored()
    bench.answers.clear()
    bench.join("b")
    bench.join("a", member_id)
    other = bench.joined("b").member_id
    assigned = {
        member_id: write_assignment({"orders": [0, 1]}, 1),
        other: write_assignment({"orders": [2], "bills": [0]}, 1),
    }
    bench.answers.clear()
    bench.sync("a", member_id, assigned)
    bench.stored()
    assert [event.partitions_moved for event in bench.group.timeline.events if event.kind == "rebalanced"] == [0, 1]


def test_a_group_that_waits_for_the_log_alone_is_not_called_again_and_again() -> None:
    """All have synced, what they agreed on is not acknowledged: the time for that to be done is not this group's."""
    bench = Bench()
    bench.join("a")
    bench.wait(INITIAL_DELAY_MS)
    member_id = bench.joined("a").member_id
    bench.sync("a", member_id, {member_id: b"all"})
    bench.wait(REBALANCE_MS + 1)
    deadline_ms = bench.group.next_deadline_ms
    assert deadline_ms is None or deadline_ms > bench.now_ms


def test_silence_is_noted_as_such() -> None:
    bench, ids = stable("a")
    bench.wait(SESSION_MS)
    kinds = [(event.kind.value, event.member_id) for event in bench.group.timeline.events]
    assert ("timed_out", ids["a"]) in kinds
