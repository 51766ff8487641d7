"""Who is let into a classic group, and as whom. What Kafka 4.3.1 answered decides where it could go either way."""

from __future__ import annotations

from typing import Any

import pytest

from broker_engine.errors import ErrorCode
from broker_engine.groups.effects import JoinAnswer
from broker_engine.groups.records import GroupMemberValue
from broker_engine.groups.states import GroupState
from broker_engine.groups.stored import group_value, restore_group
from tests.broker_engine.groups.members import INITIAL_DELAY_MS, REBALANCE_MS, SESSION_MS, Bench, stable

# --- newcomers


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


def test_a_member_that_changes_its_protocols_is_counted_by_the_new_ones() -> None:
    bench, ids = stable("a", "b")
    for spoken in ("range sticky", "sticky range sticky", "sticky"):
        assert bench.join("a", ids["a"], protocols=spoken) is None
        last = bench.join("b", ids["b"], protocols=spoken)
        assert last is not None
        assert last.protocol == bench.joined("a").protocol == spoken.split()[0]
    refused = bench.join("c", protocols="range")
    assert refused is not None
    assert refused.code is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    bench.leave(ids["a"])
    bench.leave(ids["b"])
    assert bench.join("c", protocols="range") is None, "nobody is left who does not speak it"


def test_members_that_speak_very_many_protocols_hold_up_nobody() -> None:
    """To look each name up among all of another member's took minutes at this size."""
    bench = Bench()
    names = [f"protocol-{number}" for number in range(50_000)]
    bench.join("a", protocols=" ".join(names))
    bench.join("b", protocols=" ".join(reversed(names)))
    bench.join("c", protocols=names[7])
    bench.wait(2 * INITIAL_DELAY_MS)
    assert bench.joined("a").protocol == bench.joined("c").protocol == names[7]


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


def come_back(bench: Bench, who: str, **fields: Any) -> JoinAnswer:
    assert bench.join(who, **fields) is None
    bench.stored()
    return bench.joined(who)


def test_a_static_member_comes_back_without_a_rebalance_and_its_old_self_is_fenced() -> None:
    bench, _, old = static_pair()
    answer = come_back(bench, "b", instance="two")
    assert (answer.generation, bench.group.state) == (1, GroupState.STABLE)
    assert bench.heartbeat(old, instance="two") is ErrorCode.FENCED_INSTANCE_ID
    assert bench.heartbeat(old) is ErrorCode.UNKNOWN_MEMBER_ID
    bench.sync("b", answer.member_id, instance_id="two")
    assert bench.synced("b").assignment == b"b"


def test_a_static_member_learns_its_new_id_when_a_successor_would_know_it() -> None:
    """Else a fail-over in between fences the one that lives."""
    bench, _, _ = static_pair()
    assert bench.join("b", instance="two") is None
    stored = group_value(bench.group)
    bench.stored()
    told = bench.joined("b").member_id
    successor = Bench()
    restore_group(successor.group, stored, successor.now_ms)
    assert successor.heartbeat(told, instance="two") is ErrorCode.NONE


def test_a_return_that_cannot_be_stored_has_not_happened() -> None:
    bench, leader, _ = static_pair()
    stored = group_value(bench.group)
    assert bench.join("a", instance="one", session_timeout_ms=2 * SESSION_MS) is None
    bench.stored(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    told = bench.joined("a")
    assert (told.code, told.member_id) == (ErrorCode.COORDINATOR_NOT_AVAILABLE, "")
    assert bench.heartbeat(leader, instance="one") is ErrorCode.NONE
    now = group_value(bench.group)
    assert (now.leader, sorted(now.members, key=by_id)) == (stored.leader, sorted(stored.members, key=by_id))


def by_id(member: GroupMemberValue) -> str:
    return member.member_id


def test_who_comes_back_twice_is_welcomed_once() -> None:
    bench, _, _ = static_pair()
    bench.join("b", instance="two")
    bench.join("b again", instance="two")
    assert bench.joined("b").code is ErrorCode.FENCED_INSTANCE_ID
    for store in bench.stores[-2:]:
        bench.stored(store=store)
    assert bench.joined("b again").code is ErrorCode.NONE
    assert bench.answers == {}


def test_who_comes_back_while_others_are_called_has_joined_with_them() -> None:
    bench, leader, _ = static_pair()
    bench.join("b", instance="two")
    bench.join("c")
    bench.stored()
    assert bench.answers == {}
    bench.join("a", leader, instance="one")
    assert [bench.joined(who).generation for who in ("b", "c")] == [2, 2]


def test_who_comes_back_in_place_of_one_that_never_synced_has_a_session_of_its_own() -> None:
    bench = Bench()
    bench.join("a", instance="one")
    bench.join("b", instance="two")
    bench.wait(2 * INITIAL_DELAY_MS)
    a, b = bench.joined("a").member_id, bench.joined("b").member_id
    bench.sync("a", a, {a: b"a", b: b"b"}, instance_id="one")
    bench.stored()
    told = come_back(bench, "b", instance="two")
    for _ in range(13):
        bench.wait(REBALANCE_MS // 12)
        bench.heartbeat(a, instance="one")
        bench.heartbeat(told.member_id, instance="two")
    assert bench.group.state is GroupState.STABLE


def test_a_static_leader_that_comes_back_need_not_assign_again() -> None:
    bench, old, _ = static_pair()
    told = come_back(bench, "a", instance="one", can_skip_assignment=True)
    assert (told.skip_assignment, told.leader, len(told.members)) == (True, told.member_id, 2)
    again = come_back(bench, "a", instance="one", can_skip_assignment=False)
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


def test_a_group_that_waits_for_static_members_without_a_rebalance_time_is_not_called_again_and_again() -> None:
    bench, _, _ = static_pair()
    for who, instance in (("a", "one"), ("b", "two")):
        come_back(bench, who, instance=instance, rebalance_timeout_ms=0)
    bench.leave("", "two")
    bench.group.on_time(bench.now_ms)
    deadline_ms = bench.group.next_deadline_ms
    assert deadline_ms is not None
    assert deadline_ms >= bench.now_ms + 1_000
    bench.wait(SESSION_MS)
    assert bench.group.state is GroupState.EMPTY
