"""Our own cluster behind the seam: the client's admin calls on replicas, leaders and brokers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Protocol, TypeVar

from broker_engine import client as engine
from broker_engine.client import (
    Admin,
    ConfigChange,
    ConfigOperation,
    ConfigResource,
    ErrorCode,
    KafkaError,
    TopicPartition,
)
from broker_engine.client.balance import propose_moves
from control_plane.engine.cluster import Move, PartitionName, Replicas

T = TypeVar("T")

TELEMETRY = "__telemetry"  # each of its partitions belongs to one broker
ALL_BROKERS = ConfigResource(engine.ResourceType.BROKER, "")
THROTTLED_RATES = ("leader.replication.throttled.rate", "follower.replication.throttled.rate")
THROTTLED_REPLICAS = ("leader.replication.throttled.replicas", "follower.replication.throttled.replicas")
MOVES_PER_REQUEST = 500


class Run(Protocol):
    def __call__(self, work: Callable[[Admin], Awaitable[T]], timeout_s: float) -> T:
        """Carry out on the client's loop; errors come back as the seam's."""


class HighwaterCluster:
    def __init__(self, run: Run) -> None:
        self._run = run

    def live_brokers(self, *, timeout_s: float) -> list[int]:
        async def look(admin: Admin) -> list[int]:
            return sorted((await admin.describe_cluster()).brokers)

        return self._run(look, timeout_s)

    def placement(self, *, timeout_s: float) -> Mapping[PartitionName, Replicas]:
        async def look(admin: Admin) -> Mapping[PartitionName, Replicas]:
            return _placement(await _movable(admin))

        return self._run(look, timeout_s)

    def propose_moves(self, *, replication_factor: int | None, leaving: frozenset[int], timeout_s: float) -> list[Move]:
        async def propose(admin: Admin) -> list[Move]:
            cluster, under_way = await admin.describe_cluster(), await admin.list_reassignments()
            topics = await _movable(admin)
            before = _placement(topics)
            staying = [node for node in cluster.brokers if node not in leaving]
            moves: dict[TopicPartition, Replicas] = {}
            for group, factor in _groups(topics, replication_factor, is_shrinking=bool(leaving)):
                moves |= propose_moves(group, cluster, brokers=staying, replication_factor=factor, under_way=under_way)
            return [Move(_logical(target), before[_logical(target)], after) for target, after in moves.items()]

        return self._run(propose, timeout_s)

    def begin_moves(self, moves: list[Move], *, bytes_per_s_max: int | None, timeout_s: float) -> None:
        async def begin(admin: Admin) -> None:
            if bytes_per_s_max is not None:
                await _throttle(admin, {_physical(move.partition).topic for move in moves}, bytes_per_s_max)
            wanted = {_physical(move.partition): move.after for move in moves}
            targets = list(wanted)
            for start in range(0, len(targets), MOVES_PER_REQUEST):
                part = {target: wanted[target] for target in targets[start : start + MOVES_PER_REQUEST]}
                engine.raise_errors(await admin.alter_reassignments(part))

        self._run(begin, timeout_s)

    def moves_under_way(self, *, timeout_s: float) -> list[PartitionName]:
        async def look(admin: Admin) -> list[PartitionName]:
            return sorted(_logical(target) for target in await admin.list_reassignments())

        return self._run(look, timeout_s)

    def cancel_moves(self, *, timeout_s: float) -> int:
        async def cancel(admin: Admin) -> int:
            outcomes = await admin.alter_reassignments(dict.fromkeys(await admin.list_reassignments()))
            for outcome in outcomes.values():
                # What was done between our look and our word needs no cancelling.
                if outcome is not None and outcome.code != ErrorCode.NO_REASSIGNMENT_IN_PROGRESS:
                    raise outcome
            return sum(outcome is None for outcome in outcomes.values())

        return self._run(cancel, timeout_s)

    def end_throttle(self, *, timeout_s: float) -> None:
        self._run(_end_throttle, timeout_s)

    def elect_preferred_leaders(self, *, timeout_s: float) -> int:
        async def elect(admin: Admin) -> int:
            return sum(outcome is None for outcome in (await admin.elect_leaders()).values())

        return self._run(elect, timeout_s)

    def remove_broker(self, broker: int, *, timeout_s: float) -> None:
        async def remove(admin: Admin) -> None:
            for voter in (await admin.describe_quorum()).voters:
                if voter.node == broker:
                    await admin.remove_voter(broker, voter.directory_id)
            await admin.unregister_broker(broker)

        self._run(remove, timeout_s)


async def _movable(admin: Admin) -> list[engine.TopicView]:
    return [view for name, view in (await admin.list_topics()).items() if name != TELEMETRY]


def _groups(
    views: list[engine.TopicView], replication_factor: int | None, *, is_shrinking: bool
) -> list[tuple[list[engine.TopicView], int | None]]:
    """Topics that get another number of copies, and where brokers leave also those that keep theirs."""
    if replication_factor is None:
        return [(views, None)]
    if not is_shrinking:
        return [([view for view in views if min(_factors(view)) < replication_factor], replication_factor)]
    too_many = [view for view in views if max(_factors(view)) > replication_factor]
    return [(too_many, replication_factor), ([view for view in views if view not in too_many], None)]


def _factors(view: engine.TopicView) -> list[int]:
    return [len(part.replicas) for part in view.partitions.values()]


def _placement(views: Iterable[engine.TopicView]) -> dict[PartitionName, Replicas]:
    return {
        _logical(TopicPartition(view.name, index)): part.replicas
        for view in views
        for index, part in view.partitions.items()
    }


def _logical(target: TopicPartition) -> PartitionName:
    tenant, slash, name = target.topic.partition("/")
    return PartitionName(tenant, name, target.partition) if slash else PartitionName("", tenant, target.partition)


def _physical(name: PartitionName) -> TopicPartition:
    return TopicPartition(f"{name.tenant}/{name.topic}" if name.tenant else name.topic, name.partition)


async def _throttle(admin: Admin, topics: Iterable[str], bytes_per_s: int) -> None:
    rates = [ConfigChange(name, str(bytes_per_s)) for name in THROTTLED_RATES]
    everything = [ConfigChange(name, "*") for name in THROTTLED_REPLICAS]
    changes = {ALL_BROKERS: rates, **{ConfigResource.topic(topic): everything for topic in sorted(topics)}}
    engine.raise_errors(await admin.incremental_alter_configs(changes))


async def _end_throttle(admin: Admin) -> None:
    brokers = (await admin.describe_configs([ALL_BROKERS], names=THROTTLED_RATES))[ALL_BROKERS]
    if isinstance(brokers, KafkaError):
        raise brokers
    rates = [entry.name for entry in brokers.values() if entry.source == engine.ConfigSource.DYNAMIC_DEFAULT_BROKER]
    if not rates:
        return
    topics = [ConfigResource.topic(name) for name in await admin.list_topics()]
    found = await admin.describe_configs(topics, names=THROTTLED_REPLICAS)
    changes = {ALL_BROKERS: [_unset(name) for name in rates]}
    for resource, entries in found.items():
        if not isinstance(entries, KafkaError):  # deleted meanwhile
            own = [_unset(it.name) for it in entries.values() if it.source == engine.ConfigSource.TOPIC]
            changes |= {resource: own} if own else {}
    engine.raise_errors(await admin.incremental_alter_configs(changes))


def _unset(name: str) -> ConfigChange:
    return ConfigChange(name, None, ConfigOperation.DELETE)
