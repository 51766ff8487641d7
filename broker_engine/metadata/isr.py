"""AlterPartition: a leader proposes its ISR, the controller decides by compare-and-set (KIP-497, KIP-841, KIP-903).

The proposal names the leader epoch and the partition epoch that it rests on: a leader of the past and one that has
not seen the latest change are refused. Nobody comes into an ISR who is fenced, shutting down or in another life than
the leader saw. Answers as Kafka 4.3.1's, but for one: a leader that leaves itself out asks for another one to lead
(Kafka: INVALID_REQUEST).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from broker_engine.config.topic import TopicDefaults
from broker_engine.errors import BrokerError, ErrorCode
from broker_engine.metadata.brokers import registered
from broker_engine.metadata.decision import Decision, invalid_request
from broker_engine.metadata.image import MetadataImage
from broker_engine.metadata.partition_change import rules_of, settle
from broker_engine.metadata.parts import RECOVERED, RECOVERING, PartitionImage
from broker_engine.metadata.snapshot import partition_record

UNKNOWN_EPOCH = -1
"""A proposed member whose broker epoch the leader does not say: it is not checked."""


@dataclass(frozen=True, slots=True)
class IsrProposal:
    topic_id: UUID
    partition: int
    leader_epoch: int
    partition_epoch: int
    isr: Sequence[tuple[int, int]]
    """(broker, broker epoch) each."""
    leader_recovery_state: int = RECOVERED


@dataclass(frozen=True, slots=True)
class IsrResult:
    topic_id: UUID
    partition: int
    error_code: ErrorCode = ErrorCode.NONE
    state: PartitionImage | None = None
    """What the partition is afterwards; None with an error."""


def alter_partition(
    image: MetadataImage,
    *,
    broker_id: int,
    broker_epoch: int,
    changes: Sequence[IsrProposal],
    config: TopicDefaults,
) -> Decision[IsrResult]:
    """One result per proposal. STALE_BROKER_EPOCH for all of them from a broker's former life."""
    registered(image, broker_id, broker_epoch)
    changed, results = dict[tuple[UUID, int], PartitionImage](), list[IsrResult]()
    for proposal in changes:
        place = proposal.topic_id, proposal.partition
        try:
            before = changed.get(place) or _partition(image, proposal)
            check_proposal(image, broker_id, before, proposal)
        except BrokerError as error:
            results.append(IsrResult(*place, error.code))
            continue
        after = _with_isr(image, before, proposal, config)
        if after is not before:
            changed[place] = after
        # The ISR that completes a reassignment may be the end of the leader that proposed it, or ask for more in sync
        # (min.insync goes by the factor): until the image says how many, it must not shrink and acknowledge by the old.
        is_news = after.leader != broker_id or after.replication_factor != before.replication_factor
        results.append(IsrResult(*place, ErrorCode.NEW_LEADER_ELECTED) if is_news else IsrResult(*place, state=after))
    return Decision(tuple(partition_record(*place, after) for place, after in changed.items()), tuple(results))


def _partition(image: MetadataImage, proposal: IsrProposal) -> PartitionImage:
    topic = image.topic_by_id(proposal.topic_id)
    if topic is None:
        raise BrokerError(ErrorCode.UNKNOWN_TOPIC_ID)
    if proposal.partition not in topic.partitions:
        raise BrokerError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    return topic.partitions[proposal.partition]


def _with_isr(
    image: MetadataImage, before: PartitionImage, proposal: IsrProposal, config: TopicDefaults
) -> PartitionImage:
    isr = tuple(member for member, _epoch in proposal.isr)
    target = dataclasses.replace(before, isr=isr, leader_recovery_state=proposal.leader_recovery_state)
    return settle(before, target, rules_of(image, image.topics[proposal.topic_id], config))


def check_proposal(image: MetadataImage, broker_id: int, partition: PartitionImage, proposal: IsrProposal) -> None:
    if proposal.leader_epoch > partition.leader_epoch or proposal.partition_epoch > partition.partition_epoch:
        # The leader has seen more than we have: somebody else is the controller.
        raise BrokerError(ErrorCode.NOT_CONTROLLER)
    if proposal.leader_epoch < partition.leader_epoch:
        raise BrokerError(ErrorCode.FENCED_LEADER_EPOCH)
    if partition.leader != broker_id:
        raise invalid_request("Only the leader proposes an ISR.")
    if proposal.partition_epoch < partition.partition_epoch:
        raise BrokerError(ErrorCode.INVALID_UPDATE_VERSION)
    _check_members(image, partition, proposal)


def _check_members(image: MetadataImage, partition: PartitionImage, proposal: IsrProposal) -> None:
    members = [member for member, _epoch in proposal.isr]
    if len(set(members)) != len(members) or not set(members) <= set(partition.replicas):
        raise invalid_request("An ISR has replicas of the partition, each once.")
    if partition.leader not in members and not (members and set(members) <= set(partition.isr)):
        raise invalid_request("A leader that asks for another one leaves it to those who are in sync already.")
    is_recovering = proposal.leader_recovery_state == RECOVERING
    if is_recovering and (members != [partition.leader] or partition.leader_recovery_state == RECOVERED):
        raise invalid_request("A leader that recovers is alone in its ISR.")
    for member, epoch in proposal.isr:
        broker = image.brokers.get(member)
        if broker is None or not broker.is_active or epoch not in (UNKNOWN_EPOCH, broker.epoch):
            raise BrokerError(ErrorCode.INELIGIBLE_REPLICA)
