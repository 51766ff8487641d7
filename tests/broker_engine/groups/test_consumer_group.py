"""A group of the consumer protocol, story by story. What Kafka 4.3.1 answered decides where it could go either way."""

from __future__ import annotations

from typing import Any

import pytest

from broker_engine.errors import BrokerError, ErrorCode
from broker_engine.groups.consumer.heartbeat import check_ask
from broker_engine.groups.consumer.member import HeartbeatAsk, MemberState
from broker_engine.groups.states import GroupState
from tests.broker_engine.groups.consumers import REBALANCE_MS, ConsumerBench, FakeTopics, owned, settle

SESSION_MS = 45_000
INTERVAL_MS = 1_000

# --- what no group could make sense of

JOIN: dict[str, Any] = {"epoch": 0, "rebalance_timeout_ms": 1, "topic_names": frozenset({"x"}), "owned": {}}


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({}, ErrorCode.NONE),
        ({"topic_names": frozenset()}, ErrorCode.NONE),
        ({"topic_names": None, "topic_regex": "x.*"}, ErrorCode.NONE),
        ({"member_id": ""}, ErrorCode.INVALID_REQUEST),
        ({"instance_id": ""}, ErrorCode.INVALID_REQUEST),
        ({"rack_id": ""}, ErrorCode.INVALID_REQUEST),
        ({"rebalance_timeout_ms": -1}, ErrorCode.INVALID_REQUEST),
        ({"topic_names": None}, ErrorCode.INVALID_REQUEST),
        ({"owned": None}, ErrorCode.INVALID_REQUEST),
        ({"owned": {"t": frozenset({1})}}, ErrorCode.INVALID_REQUEST),
        ({"epoch": -2}, ErrorCode.INVALID_REQUEST),
        ({"epoch": -3, "instance_id": "i"}, ErrorCode.INVALID_REQUEST),
        ({"server_assignor": "sticky"}, ErrorCode.UNSUPPORTED_ASSIGNOR),
        ({"server_assignor": "range"}, ErrorCode.NONE),
        ({"topic_regex": "a("}, ErrorCode.INVALID_REGULAR_EXPRESSION),
        ({"topic_regex": "(?=look)"}, ErrorCode.INVALID_REGULAR_EXPRESSION),
        ({"topic_regex": "x" * 5_000}, ErrorCode.INVALID_REGULAR_EXPRESSION),
        ({"topic_regex": "\udcff"}, ErrorCode.INVALID_REGULAR_EXPRESSION),
    ],
)
def test_a_heartbeat_is_checked_before_any_group_is_asked(change: dict[str, Any], code: ErrorCode) -> None:
    ask = HeartbeatAsk(**{"member_id": "m", **JOIN, **change})
    found = ErrorCode.NONE
    try:
        check_ask(ask, ("uniform", "range"), needs_member_id=True)
    except BrokerError as error:
        found = error.code
    assert found is code


def test_an_older_client_may_join_without_an_id_but_not_go_on_without_one() -> None:
    check_ask(HeartbeatAsk(**{"member_id": "", **JOIN}), ("uniform",), needs_member_id=False)
    with pytest.raises(BrokerError):
        check_ask(HeartbeatAsk(member_id="", epoch=3), ("uniform",), needs_member_id=False)


# --- joining and moving


def test_the_first_member_gets_everything_at_once() -> None:
    bench = ConsumerBench()
    answer = bench.join("a")
    assert answer.epoch == 2, "as Kafka 4.3"
    assert answer.assignment is not None
    assert bench.held("a") == [0, 1, 2, 3, 4, 5]
    assert bench.group.state is GroupState.STABLE
    assert bench.ask("a", 2).assignment is None, "nothing is new"


def test_a_second_member_waits_for_the_next_target_and_then_for_the_first_to_give_up() -> None:
    bench = ConsumerBench()
    bench.join("a")
    first = bench.join("b")
    assert (first.epoch, first.assignment, bench.group.state) == (2, {}, GroupState.ASSIGNING)
    bench.wait(INTERVAL_MS)
    assert bench.group.state is GroupState.RECONCILING
    assert bench.ask("b", 2).assignment is None, "all is still with the first"
    assert bench.group.members["b"].standing.state is MemberState.UNRELEASED_PARTITIONS
    told = bench.ask("a", 2)
    assert (told.epoch, bench.held("a")) == (2, [0, 1, 2])
    assert bench.ask("b", 3).assignment is None, "the first has been told, and has not said that they are gone"
    assert bench.ask("a", 2, owned=owned(bench, "a")).epoch == 3
    assert bench.ask("b", 3).assignment is not None
    assert bench.held("b") == [3, 4, 5]
    assert bench.group.state is GroupState.STABLE


def test_whoever_leaves_leaves_its_partitions_to_the_others() -> None:
    bench = ConsumerBench()
    bench.join("a")
    bench.join("b")
    settle(bench, "a", "b")
    assert bench.ask("b", -1).epoch == -1
    settle(bench, "a")
    assert bench.held("a") == [0, 1, 2, 3, 4, 5]
    assert bench.code("b", 3) is ErrorCode.UNKNOWN_MEMBER_ID
    bench.ask("a", -1)
    assert bench.group.state is GroupState.EMPTY


def test_more_members_than_partitions_leaves_the_rest_idle() -> None:
    bench = ConsumerBench(FakeTopics(orders=2))
    for name in "abc":
        bench.join(name)
    settle(bench, *"abc")
    assert sorted(len(bench.held(name)) for name in "abc") == [0, 1, 1]
    assert bench.group.state is GroupState.STABLE


def test_one_target_serves_all_who_came_within_the_interval() -> None:
    bench = ConsumerBench()
    bench.join("a")
    for name in "bcdef":
        bench.join(name)
    assert bench.group.assignment_epoch == 2
    bench.wait(INTERVAL_MS)
    assert bench.group.assignment_epoch == bench.group.epoch == 7


def test_the_assignor_that_most_members_ask_for_is_taken() -> None:
    bench = ConsumerBench(assignment_interval_ms=0)
    bench.join("a", server_assignor="range")
    bench.join("b", server_assignor="range")
    bench.join("c", server_assignor="uniform")
    bench.join("d")
    assert bench.group.preferred_assignor() == "range"


def test_a_full_group_takes_nobody_more_but_those_who_are_in_it() -> None:
    bench = ConsumerBench(size_max=1)
    bench.join("a")
    with pytest.raises(BrokerError) as refused:
        bench.join("b")
    assert refused.value.code is ErrorCode.GROUP_MAX_SIZE_REACHED
    assert bench.code("a", 2) is ErrorCode.NONE


# --- fencing


def test_an_epoch_that_is_not_the_members_own_is_fenced() -> None:
    bench = ConsumerBench()
    bench.join("a")
    assert bench.code("a", 3) is ErrorCode.FENCED_MEMBER_EPOCH
    assert bench.code("a", 1) is ErrorCode.FENCED_MEMBER_EPOCH
    assert bench.code("x", 2) is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_lost_answer_is_given_again_to_a_member_that_holds_no_more_than_it_was_given() -> None:
    bench = ConsumerBench()
    bench.join("a")
    bench.topics.change(orders=8)
    assert bench.ask("a", 2).assignment is None, "the last target is too young"
    bench.wait(INTERVAL_MS)
    bench.ask("a", 2)
    assert bench.group.members["a"].epoch == 3
    assert bench.code("a", 2) is ErrorCode.FENCED_MEMBER_EPOCH, "it does not say what it holds"
    fields = {"rebalance_timeout_ms": REBALANCE_MS, "topic_names": frozenset({"orders"})}
    again = bench.ask("a", 2, owned=owned(bench, "a"), **fields)
    assert again.epoch == 3
    assert again.assignment == owned(bench, "a")
    foreign = {next(iter(owned(bench, "a"))): frozenset({99})}
    assert bench.code("a", 2, owned=foreign) is ErrorCode.FENCED_MEMBER_EPOCH


def test_a_fenced_member_joins_again_under_its_id() -> None:
    bench = ConsumerBench()
    bench.join("a")
    bench.join("b")
    settle(bench, "a", "b")
    assert bench.code("b", 99) is ErrorCode.FENCED_MEMBER_EPOCH
    assert bench.join("b").epoch == bench.group.assignment_epoch
    assert bench.held("b") == [3, 4, 5]


# --- silence


def test_silence_for_a_session_ends_a_membership() -> None:
    bench = ConsumerBench()
    bench.join("a")
    bench.join("b")
    settle(bench, "a", "b")
    bench.wait(SESSION_MS - 5_000)
    bench.ask("a", bench.group.members["a"].epoch)
    bench.wait(5_000)
    assert list(bench.group.members) == ["a"]
    kinds = [(event.kind.value, event.member_id) for event in bench.group.timeline.events]
    assert ("timed_out", "b") in kinds


def test_who_does_not_give_up_in_its_rebalance_time_is_out_however_lively_it_is() -> None:
    bench = ConsumerBench()
    bench.join("a", rebalance_timeout_ms=10_000)
    bench.join("b")
    bench.wait(INTERVAL_MS)
    bench.ask("a", 2)
    for _ in range(10):
        bench.wait(1_000)
        if "a" in bench.group.members:
            bench.ask("a", 2)
    assert "a" not in bench.group.members


# --- static members


def test_a_static_member_that_goes_for_a_while_finds_its_partitions_again() -> None:
    bench = ConsumerBench()
    bench.join("a", instance_id="one")
    bench.join("b")
    settle(bench, "a", "b")
    epoch, before = bench.group.epoch, bench.held("a")
    assert bench.ask("a", -2, instance_id="one").epoch == -2
    back = bench.join("a2", instance_id="one")
    assert (back.epoch, bench.held("a2"), bench.group.epoch) == (epoch, before, epoch)
    assert bench.code("a", epoch, instance_id="one") is ErrorCode.FENCED_INSTANCE_ID
    assert bench.code("a", epoch) is ErrorCode.UNKNOWN_MEMBER_ID


def test_an_instance_that_is_in_use_is_not_given_away() -> None:
    bench = ConsumerBench()
    bench.join("a", instance_id="one")
    with pytest.raises(BrokerError) as refused:
        bench.join("a2", instance_id="one")
    assert refused.value.code is ErrorCode.UNRELEASED_INSTANCE_ID
    assert bench.code("x", 3, instance_id="two") is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_static_member_that_does_not_come_back_loses_its_place_after_a_session() -> None:
    bench = ConsumerBench()
    bench.join("a", instance_id="one")
    bench.ask("a", -2, instance_id="one")
    bench.wait(SESSION_MS)
    assert bench.group.state is GroupState.EMPTY


# --- topics


def test_new_partitions_and_deleted_topics_raise_the_epoch() -> None:
    bench = ConsumerBench(FakeTopics(orders=2, bills=1))
    bench.join("a", "orders", "bills", "absent")
    bench.wait(INTERVAL_MS)
    bench.topics.change(orders=4)
    bench.ask("a", 2)
    assert (bench.group.epoch, len(bench.held("a"))) == (3, 5)
    bench.wait(INTERVAL_MS)
    bench.topics.change(bills=0)
    bench.ask("a", 3)
    assert (bench.group.epoch, len(bench.held("a"))) == (4, 4)
    bench.wait(INTERVAL_MS)
    bench.topics.change(absent=1)
    settle(bench, "a")
    assert (bench.group.epoch, len(bench.held("a"))) == (5, 5)
    bench.topics.change(other=1)
    bench.ask("a", 5)
    assert bench.group.epoch == 5, "nobody reads that one"


def test_a_regular_expression_is_matched_as_a_whole_and_again_when_topics_come() -> None:
    bench = ConsumerBench(FakeTopics(orders_eu=1, my_orders_eu=1))
    bench.join("a", topic_names=None, topic_regex="orders_.*")
    assert len(bench.held("a")) == 1
    bench.wait(INTERVAL_MS)
    bench.topics.change(orders_us=2)
    settle(bench, "a")
    assert len(bench.held("a")) == 3
    bench.ask("a", bench.group.epoch, topic_regex="", topic_names=frozenset({"my_orders_eu"}), owned=owned(bench, "a"))
    settle(bench, "a")
    assert len(bench.held("a")) == 1
    assert bench.group.regexes == {}, "nobody uses it any more"


def test_a_hostile_pattern_costs_no_time() -> None:
    bench = ConsumerBench(FakeTopics(**{"a" * 200: 1}))
    bench.join("m", topic_names=None, topic_regex="(a+)+b")
    assert bench.held("m") == []


# --- another coordinator


def test_another_coordinator_goes_on_where_the_log_ends() -> None:
    bench = ConsumerBench(FakeTopics(orders=6, bills=2))
    bench.join("a", instance_id="one")
    bench.join("b", topic_names=None, topic_regex="bill.*")
    bench.wait(INTERVAL_MS)
    bench.ask("a", 2)
    before = bench.group
    bench.fail_over()
    after = bench.group
    assert (after.epoch, after.assignment_epoch, after.metadata_hash) == (
        before.epoch,
        before.assignment_epoch,
        before.metadata_hash,
    )
    assert after.targets == before.targets
    assert after.regexes == before.regexes
    for member_id, member in before.members.items():
        found = after.members[member_id]
        assert (found.subscription, found.standing) == (member.subscription, member.standing)
    assert after.static_member("one") is after.members["a"]
    assert after.owners() == before.owners()
    settle(bench, "a", "b")
    assert bench.group.state is GroupState.STABLE


def test_a_removed_group_leaves_nothing_in_the_log() -> None:
    bench = ConsumerBench()
    bench.join("a", topic_names=None, topic_regex="o.*")
    removed = {record.key for record in bench.group.removal()}
    assert removed == {record.key for record in bench.log}
