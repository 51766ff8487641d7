"""From one protocol to the other and back, with members in the group."""

from __future__ import annotations

from typing import Any

import pytest

from broker_engine.errors import BrokerError, ErrorCode
from broker_engine.groups import migration
from broker_engine.groups.classic import ClassicGroup
from broker_engine.groups.consumer import classic_members
from broker_engine.groups.consumer.change import Change, Now
from broker_engine.groups.consumer.heartbeat import leave
from broker_engine.groups.consumer.member import LEAVING_EPOCH, HeartbeatAsk
from broker_engine.groups.consumer_protocol import read_assignment, write_assignment
from broker_engine.groups.member import JoinAsk, SyncAsk
from broker_engine.groups.settings import ConsumerSettings, GroupSettings
from broker_engine.groups.states import GroupState
from tests.broker_engine.groups.consumers import ConsumerBench, FakeTopics, owned, settle
from tests.broker_engine.groups.members import INITIAL_DELAY_MS, Bench

NOW = Now(0, 1_000_000)


def metadata(*topics: str, held: dict[str, list[int]] | None = None) -> bytes:
    """A subscription of version 1: what it wants, and what it holds."""
    names = b"".join(len(name).to_bytes(2, "big") + name.encode() for name in topics)
    has = write_assignment(held or {}, 1)[2:-4]  # without the version before it and the user's data behind it
    return b"\0\1" + len(topics).to_bytes(4, "big") + names + b"\xff\xff\xff\xff" + has


def classic_group(topics: FakeTopics, held: bytes | None = None) -> ClassicGroup:
    """One member, which holds everything."""
    bench = Bench()
    bench.join("old", protocols="range")
    bench.wait(INITIAL_DELAY_MS)
    member_id = bench.joined("old").member_id
    everything = write_assignment({"orders": [0, 1, 2, 3, 4, 5]}, 1)
    bench.sync("old", member_id, {member_id: everything if held is None else held})
    bench.stored()
    bench.group.members[member_id].protocols = (("range", metadata("orders")),)
    return bench.group


def converted(settings: ConsumerSettings | None = None, **fields: Any) -> ConsumerBench:
    bench = ConsumerBench()
    group = classic_group(bench.topics, **fields)
    new, records = migration.to_consumer(group, settings or bench.group.settings, bench.topics, NOW)
    bench.group, bench.log = new, list(records)
    return bench


def ask(member_id: str, held: dict[str, list[int]], **fields: Any) -> JoinAsk:
    given: dict[str, Any] = {
        "instance_id": None,
        "client_id": "old",
        "client_host": "/h",
        "session_timeout_ms": 10_000,
        "rebalance_timeout_ms": 60_000,
        "protocol_type": "consumer",
        "protocols": (("range", metadata("orders", held=held)),),
        **fields,
    }
    return JoinAsk(member_id=member_id, **given)


def join(bench: ConsumerBench, asked: JoinAsk) -> int:
    change = bench.change()
    answer = classic_members.join(change, asked, "new-id")
    bench.keep(change)
    return answer.generation


def test_members_keep_their_partitions_and_their_generation_is_their_epoch() -> None:
    bench = converted()
    (member,) = bench.group.members.values()
    assert (member.is_classic, member.epoch, bench.group.epoch) == (True, 1, 1)
    assert bench.held(member.id) == [0, 1, 2, 3, 4, 5]
    before = bench.group.owners()
    bench.fail_over()
    assert bench.group.owners() == before


def test_a_classic_member_gives_up_and_is_called_until_it_has_its_share() -> None:
    bench = converted()
    (old,) = bench.group.members
    bench.join("new")
    assert classic_members.heartbeat(bench.group, old, None, 1, 0) is ErrorCode.REBALANCE_IN_PROGRESS
    everything, share = {"orders": [0, 1, 2, 3, 4, 5]}, {"orders": [0, 1, 2]}
    assert join(bench, ask(old, everything)) == 1, "first it is told what to keep"
    synced = classic_members.sync(bench.group, SyncAsk(member_id=old, instance_id=None, generation=1), bench.topics, 0)
    assert read_assignment(synced.assignment) == {"orders": (0, 1, 2)}
    assert bench.held("new") == []
    assert classic_members.heartbeat(bench.group, old, None, 1, 0) is ErrorCode.REBALANCE_IN_PROGRESS
    epoch = join(bench, ask(old, share))
    assert epoch == bench.group.epoch
    settle(bench, "new")
    assert bench.held("new") == [3, 4, 5]
    assert classic_members.heartbeat(bench.group, old, None, epoch, 0) is ErrorCode.NONE
    with pytest.raises(BrokerError) as refused:
        classic_members.heartbeat(bench.group, old, None, epoch - 1, 0)
    assert refused.value.code is ErrorCode.ILLEGAL_GENERATION


def test_who_is_called_and_does_not_come_is_out() -> None:
    bench = converted()
    (old,) = bench.group.members
    bench.join("new", rebalance_timeout_ms=200_000)
    for _ in range(30):
        if old in bench.group.members:
            classic_members.heartbeat(bench.group, old, None, 1, bench.now_ms)
        bench.ask("new", bench.group.members["new"].epoch, owned=owned(bench, "new"))
        bench.wait(4_000)
    assert list(bench.group.members) == ["new"]


@pytest.mark.parametrize("settings", [{"can_upgrade": False}, {"size_max": 0}])
def test_a_living_group_is_not_converted_where_the_policy_forbids_it(settings: dict[str, Any]) -> None:
    with pytest.raises(BrokerError) as refused:
        converted(ConsumerSettings(**settings))
    assert refused.value.code is ErrorCode.GROUP_ID_NOT_FOUND


def test_a_member_whose_bytes_are_none_of_kafkas_is_not_converted() -> None:
    with pytest.raises(BrokerError) as refused:
        converted(held=b"\0")
    assert refused.value.code is ErrorCode.GROUP_ID_NOT_FOUND


def test_when_the_last_consumer_goes_its_classic_members_go_on_as_a_classic_group() -> None:
    bench = converted()
    (old,) = bench.group.members
    bench.join("new")
    settings = GroupSettings()
    assert not migration.is_downgrade_due(bench.group, settings)
    change = departed(bench, "new")
    assert migration.is_downgrade_due(change.group, settings)
    assert not migration.is_downgrade_due(change.group, GroupSettings(consumer=ConsumerSettings(can_downgrade=False)))
    group = migration.to_classic(change, settings)
    assert (group.state, group.generation, group.leader) == (GroupState.STABLE, bench.group.epoch, old)
    assert read_assignment(group.members[old].assignment) == {"orders": (0, 1, 2, 3, 4, 5)}
    group.rebalance(0)
    assert group.state is GroupState.PREPARING_REBALANCE


def departed(bench: ConsumerBench, member_id: str) -> Change:
    change = bench.change()
    leave(change, HeartbeatAsk(member_id=member_id, epoch=LEAVING_EPOCH))
    return change


def test_who_stays_when_the_last_consumer_goes_commits_and_is_called_in_the_generation_that_it_knows() -> None:
    bench = converted()
    (old,) = bench.group.members
    bench.join("new")
    join(bench, ask(old, {"orders": [0, 1, 2, 3, 4, 5]}))
    known = join(bench, ask(old, {"orders": [0, 1, 2]}))
    settle(bench, "new")
    assert classic_members.heartbeat(bench.group, old, None, known, 0) is ErrorCode.NONE
    group = migration.to_classic(departed(bench, "new"), GroupSettings())
    group.rebalance(0)
    assert group.check_commit(old, None, known, 0) is ErrorCode.NONE
    assert group.heartbeat(old, None, known, 0) is ErrorCode.REBALANCE_IN_PROGRESS


def test_a_classic_member_of_another_kind_is_not_let_in() -> None:
    bench = ConsumerBench()
    bench.join("new")
    for wrong in ({"protocol_type": "connect"}, {"protocols": ()}, {"protocols": (("range", b"?"),)}):
        with pytest.raises(BrokerError) as refused:
            join(bench, ask("", {}, **wrong))
        assert refused.value.code is ErrorCode.INCONSISTENT_GROUP_PROTOCOL


def test_classic_members_are_let_in_while_one_protocol_is_shared_by_all() -> None:
    bench = ConsumerBench()
    bench.join("new")
    for member_id, names in (("a", "range roundrobin"), ("b", "range sticky")):
        join(bench, ask(member_id, {}, protocols=protocols(names)))
    with pytest.raises(BrokerError) as refused:
        join(bench, ask("c", {}, protocols=protocols("roundrobin sticky")))
    assert refused.value.code is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert migration.to_classic(departed(bench, "new"), GroupSettings()).protocol == "range"


def protocols(names: str) -> tuple[tuple[str, bytes], ...]:
    return tuple((name, metadata("orders")) for name in names.split())
