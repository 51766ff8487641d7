"""AlterPartitionReassignments (KIP-455): grow, shrink, move, cancel. It goes on by ISR proposals (`isr.py`) and is
complete when everybody new is in sync and enough of the final replicas are; then the others are dropped.

A reassignment takes nobody into an ISR, and never lowers one below min.insync. Answers as Kafka 4.3.1's; different: a
replica that an earlier reassignment was adding is still being added when a later one keeps it, and dropped when it
does not.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from broker_engine.config.topic import TopicDefaults
from broker_engine.errors import BrokerError, ErrorCode
from broker_engine.metadata.decision import Decision, repeated
from broker_engine.metadata.image import MetadataImage
from broker_engine.metadata.partition_change import Rules, rules_of, settle, without
from broker_engine.metadata.parts import PartitionImage, TopicImage
from broker_engine.metadata.records import PartitionRecord, Record
from broker_engine.metadata.snapshot import partition_record
from broker_engine.metadata.sweep import Place
from broker_engine.names import Name


@dataclass(frozen=True, slots=True)
class Reassignment:
    name: Name
    partition: int
    replicas: tuple[int, ...] | None
    """None cancels the one under way."""


@dataclass(frozen=True, slots=True)
class ReassignmentResult:
    name: Name
    partition: int
    error_code: ErrorCode = ErrorCode.NONE
    error_message: str | None = None


def alter_reassignments(
    image: MetadataImage,
    requests: Sequence[Reassignment],
    *,
    config: TopicDefaults,
    allow_factor_change: bool = True,
) -> Decision[ReassignmentResult]:
    twice = repeated((request.name, request.partition) for request in requests)
    records, results = list[Record](), list[ReassignmentResult]()
    for request in {(request.name, request.partition): request for request in requests}.values():
        try:
            if (request.name, request.partition) in twice:
                raise _refused("The partition stands more than once in the request.")
            records += _reassign(image, request, config, allow_factor_change)
        except BrokerError as error:
            results.append(ReassignmentResult(request.name, request.partition, error.code, error.message))
        else:
            results.append(ReassignmentResult(request.name, request.partition))
    return Decision(tuple(records), tuple(results))


def list_reassignments(topics: Iterable[TopicImage]) -> list[Place]:
    """Those under way, of these topics."""
    return [
        (topic, index, topic.partitions[index])
        for topic in topics
        for index in sorted(topic.partitions)
        if topic.partitions[index].is_reassigning
    ]


def _reassign(
    image: MetadataImage, request: Reassignment, config: TopicDefaults, allow_factor_change: bool
) -> list[PartitionRecord]:
    topic = image.topic(request.name)
    before = topic.partitions.get(request.partition) if topic else None
    if topic is None or before is None:
        raise BrokerError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "")
    rules = rules_of(image, topic, config)
    if request.replicas is None:
        target = _cancelled(before, rules)
    else:
        _check_replicas(image, before, request.replicas, allow_factor_change)
        target = _begun(before, request.replicas)
    after = settle(before, target, rules)
    return [] if after is before else [partition_record(topic.id, request.partition, after)]


def _check_replicas(
    image: MetadataImage, before: PartitionImage, replicas: Sequence[int], allow_factor_change: bool
) -> None:
    if not replicas:
        raise _refused("The manual partition assignment includes an empty replica list.")
    if len(set(replicas)) != len(replicas):
        raise _refused("The manual partition assignment includes the same broker more than once.")
    for broker_id in replicas:
        if broker_id not in image.brokers:
            text = f"The manual partition assignment includes broker {broker_id}, but no such broker is registered."
            raise _refused(text)
    if not allow_factor_change and len(replicas) != before.replication_factor:
        text = f"The replication factor is changed from {before.replication_factor} to {len(replicas)}"
        raise BrokerError(ErrorCode.INVALID_REPLICATION_FACTOR, text)


def _begun(before: PartitionImage, replicas: tuple[int, ...]) -> PartitionImage:
    """All of the new replicas, the preferred leader first, and behind them those that go at the end."""
    original = without(before.replicas, *before.adding)
    # What an earlier reassignment was adding and nobody wants any more goes at once, unless it may have to lead.
    unwanted = without(before.adding, *replicas, *before.isr, *before.elr, *before.last_known_elr)
    removing = without(before.replicas, *replicas, *unwanted)
    return dataclasses.replace(
        before, replicas=(*replicas, *removing), adding=without(replicas, *original), removing=removing
    )


def _cancelled(before: PartitionImage, rules: Rules) -> PartitionImage:
    if not before.is_reassigning:
        raise BrokerError(ErrorCode.NO_REASSIGNMENT_IN_PROGRESS, "No partition reassignment is in progress.")
    target = dataclasses.replace(
        before,
        replicas=without(before.replicas, *before.adding),
        isr=without(before.isr, *before.adding),
        adding=(),
        removing=(),
    )
    is_nobody_left = not target.isr and not without(before.elr, *before.adding)
    if len(target.isr) < min(rules.needed(target), len(before.isr)) or (is_nobody_left and (before.isr or before.elr)):
        raise _refused("Too few of the replicas from before are in sync: the reassignment cannot be cancelled now.")
    return target


def _refused(text: str) -> BrokerError:
    return BrokerError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, text)
