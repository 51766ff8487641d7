"""A classic group, story by story. What Kafka 4.3.1 answered decides where the stories could go either way."""

from __future__ import annotations

import pytest

from broker_engine.errors import ErrorCode
from broker_engine.groups.states import GroupState
from tests.broker_engine.groups.members import INITIAL_DELAY_MS, REBALANCE_MS, SESSION_MS, Bench, stable

# --- joining


def test_a_new_group_waits_a_moment_so_that_its_first_members_come_together() -> None:
    bench = Bench()
    bench.join("a")
    bench.join("b")
    assert bench.answers == {}
    bench.wait(2 * INITIAL_DELAY_MS)
    a, b = bench.joined("a"), bench.joined("b")
    assert (a.generation, b.generation) == (1, 1)
    assert a.leader == b.leader == a.member_id
    assert [metadata for _, _, metadata in a.members] == [b"a by range", b"b by range"]
    assert b.members == (), "only the leader is told of everybody"


def test_the_first_wait_grows_while_members_keep_coming_but_not_beyond_the_rebalance_time() -> None:
    bench = Bench()
    bench.join("first")
    for number in range(25):
        bench.wait(INITIAL_DELAY_MS - 500)
        bench.join(f"late-{number}")
    assert bench.joined("first").generation == 1
    assert bench.now_ms >= REBALANCE_MS


def test_a_new_client_first_gets_an_id_and_joins_with_it() -> None:
    bench = Bench()
    asked = bench.join("a", needs_known_id=True)
    assert asked is not None
    assert (asked.code, asked.generation, asked.leader) == (ErrorCode.MEMBER_ID_REQUIRED, -1, "")
    assert bench.heartbeat(asked.member_id) is ErrorCode.UNKNOWN_MEMBER_ID
    assert bench.join("a", asked.member_id, needs_known_id=True) is None
    bench.wait(INITIAL_DELAY_MS)
    assert bench.joined("a").member_id == asked.member_id


def test_an_id_that_nobody_joins_with_is_forgotten_after_a_session() -> None:
    bench = Bench()
    asked = bench.join("a", needs_known_id=True)
    assert asked is not None
    bench.wait(SESSION_MS)
    late = bench.join("a", asked.member_id, needs_known_id=True)
    assert late is not None
    assert late.code is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_protocol_is_chosen_that_all_speak_by_the_votes_of_all() -> None:
    bench = Bench()
    bench.join("a", protocols="range sticky")
    bench.join("b", protocols="sticky range")
    bench.join("c", protocols="sticky range odd")
    bench.wait(2 * INITIAL_DELAY_MS)
    assert bench.joined("a").protocol == "sticky"


@pytest.mark.parametrize("change", [{"protocols": "other"}, {"protocols": ""}, {"protocol_type": "connect"}])
def test_who_shares_no_protocol_is_not_let_in(change: dict[str, str]) -> None:
    bench, _ = stable("a")
    refused = bench.join("b", **change)
    assert refused is not None
    assert refused.code is ErrorCode.INCONSISTENT_GROUP_PROTOCOL


def test_a_full_group_takes_nobody_more_but_those_who_are_in_it() -> None:
    bench, ids = stable("a", "b", size_max=2)
    refused = bench.join("c")
    assert refused is not None
    assert refused.code is ErrorCode.GROUP_MAX_SIZE_REACHED
    assert bench.join("a", ids["a"]) is None, "the leader comes again, and a rebalance begins"


def test_a_group_that_nobody_came_to_is_nothing() -> None:
    bench = Bench()
    bench.join("a", protocols="")
    assert bench.group.is_nothing
    asked = bench.join("a", needs_known_id=True)
    assert asked is not None
    assert not bench.group.is_nothing, "somebody is about to join"
    bench.wait(SESSION_MS)
    assert bench.group.is_nothing
    assert not stable("a")[0].group.is_nothing


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


# --- static members


def static_pair() -> tuple[Bench, str, str]:
    bench = Bench()
    bench.join("a", instance="one")
    bench.join("b", instance="two")
    bench.wait(2 * INITIAL_DELAY_MS)
    a, b = bench.joined("a").member_id, bench.joined("b").member_id
    bench.sync("a", a, {a: b"a", b: b"b"}, instance_id="one")
    bench.sync("b", b, instance_id="two")
    bench.stored()
    bench.answers.clear()
    return bench, a, b


def test_a_static_member_comes_back_without_a_rebalance_and_its_old_self_is_fenced() -> None:
    bench, _, old = static_pair()
    answer = bench.join("b", instance="two")
    assert answer is not None
    assert (answer.generation, bench.group.state) == (1, GroupState.STABLE)
    assert bench.heartbeat(old, instance="two") is ErrorCode.FENCED_INSTANCE_ID
    assert bench.heartbeat(old) is ErrorCode.UNKNOWN_MEMBER_ID
    bench.sync("b", answer.member_id, instance_id="two")
    assert bench.synced("b").assignment == b"b"


def test_a_static_leader_that_comes_back_need_not_assign_again() -> None:
    bench, old, _ = static_pair()
    told = bench.join("a", instance="one", can_skip_assignment=True)
    assert told is not None
    assert (told.skip_assignment, told.leader, len(told.members)) == (True, told.member_id, 2)
    again = bench.join("a", instance="one", can_skip_assignment=False)
    assert again is not None
    assert again.leader == told.member_id != again.member_id, "an old client is told its former id, and follows"
    assert old not in bench.group.members


def test_a_static_member_that_would_change_the_protocol_begins_a_rebalance() -> None:
    bench = Bench()
    bench.join("a", instance="one", protocols="sticky range")
    bench.wait(INITIAL_DELAY_MS)
    a = bench.joined("a").member_id
    bench.sync("a", a, {a: b"all"}, instance_id="one")
    bench.stored()
    bench.answers.clear()
    answer = bench.join("a", instance="one", protocols="range")
    assert bench.group.protocol == "range"
    assert answer is not None
    assert answer.generation == 2


def test_a_static_member_that_stays_away_is_removed_after_its_session_or_by_name() -> None:
    bench, a, _ = static_pair()
    assert bench.leave("", "two") is ErrorCode.NONE
    assert bench.leave("", "two") is ErrorCode.UNKNOWN_MEMBER_ID
    assert bench.leave("somebody", "one") is ErrorCode.FENCED_INSTANCE_ID
    bench.wait(SESSION_MS)
    assert bench.heartbeat(a, instance="one") is ErrorCode.UNKNOWN_MEMBER_ID
    assert bench.group.state is GroupState.EMPTY


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
