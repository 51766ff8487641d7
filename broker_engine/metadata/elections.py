"""ElectLeaders, and the balance of preferred leaders. Answers as Kafka 4.3.1's."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from broker_engine.config.topic import TopicDefaults
from broker_engine.errors import BrokerError, ErrorCode
from broker_engine.ids import NO_LEADER
from broker_engine.metadata.decision import Decision
from broker_engine.metadata.image import MetadataImage
from broker_engine.metadata.log_ends import NO_LOG_ENDS, LogEnds, of_this_life
from broker_engine.metadata.partition_change import Election, rules_of, settle
from broker_engine.metadata.parts import PartitionImage, TopicImage
from broker_engine.metadata.records import PartitionRecord, Record
from broker_engine.metadata.snapshot import partition_record
from broker_engine.metadata.sweep import Place, partitions_where
from broker_engine.names import Name

BALANCED_AT_ONCE_MAX = 1000
"""A batch of elections stays small enough not to hold up other changes; the next one follows."""


@dataclass(frozen=True, slots=True)
class ElectionResult:
    name: Name
    partition: int
    error_code: ErrorCode = ErrorCode.NONE
    error_message: str | None = None


def elect_leaders(
    image: MetadataImage,
    partitions: Iterable[tuple[Name, int]],
    election: Election,
    *,
    config: TopicDefaults,
    log_ends: LogEnds = NO_LOG_ENDS,
) -> Decision[ElectionResult]:
    """PREFERRED or UNCLEAN. An unclean election by hand needs no permission of the topic: it is one."""
    records, results = list[Record](), list[ElectionResult]()
    for name, index in dict.fromkeys(partitions):
        try:
            records.append(_elect(image, (name, index), election, config, log_ends))
        except BrokerError as error:
            results.append(ElectionResult(name, index, error.code, error.message))
        else:
            results.append(ElectionResult(name, index))
    return Decision(tuple(records), tuple(results))


def _elect(
    image: MetadataImage, asked: tuple[Name, int], election: Election, config: TopicDefaults, log_ends: LogEnds
) -> PartitionRecord:
    name, index = asked
    topic = image.topic(name)
    partition = topic.partitions.get(index) if topic else None
    if topic is None or partition is None:
        raise BrokerError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"No such partition as {name.name}-{index}")
    if not _is_needed(partition, election):
        raise BrokerError(ErrorCode.ELECTION_NOT_NEEDED, "Leader election not needed for topic partition.")
    ends = of_this_life(image, log_ends.get((topic.id, index), {}))
    changed = settle(partition, partition, rules_of(image, topic, config), election=election, log_ends=ends)
    if _is_needed(changed, election):
        raise _impossible(election)
    return partition_record(topic.id, index, changed)


def _is_needed(partition: PartitionImage, election: Election) -> bool:
    if election is Election.PREFERRED:
        return partition.leader != partition.replicas[0]
    return partition.leader == NO_LEADER


def _impossible(election: Election) -> BrokerError:
    if election is Election.PREFERRED:
        return BrokerError(ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE, "The preferred leader was not available.")
    text = "Eligible topic partition leaders are not available."
    return BrokerError(ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE, text)


def balance_leaders(image: MetadataImage, imbalance_percent: int, *, config: TopicDefaults) -> Decision[ElectionResult]:
    """Preferred leaders for every broker that lacks more than this share of the partitions that it should lead.

    Only where the preferred one can take over now, and not in the middle of a reassignment.
    """
    wanted = Counter(partition.replicas[0] for *_, partition in partitions_where(image, _is_settled))
    lacking = [place for place in partitions_where(image, _is_settled) if place[2].leader != place[2].replicas[0]]
    lacked = Counter(partition.replicas[0] for *_, partition in lacking)
    unbalanced = {broker for broker, count in lacked.items() if count * 100 > imbalance_percent * wanted[broker]}
    movable = [place for place in lacking if _can_move(image, place, unbalanced)][:BALANCED_AT_ONCE_MAX]
    return elect_leaders(image, _names(movable), Election.PREFERRED, config=config)


def _is_settled(partition: PartitionImage) -> bool:
    return not partition.is_reassigning


def _can_move(image: MetadataImage, place: Place, unbalanced: Iterable[int]) -> bool:
    preferred = place[2].replicas[0]
    broker = image.brokers.get(preferred)
    return preferred in unbalanced and preferred in place[2].isr and broker is not None and broker.is_active


def _names(places: Sequence[Place]) -> list[tuple[Name, int]]:
    return [(topic.name, index) for topic, index, _partition in places]


def every_partition(topics: Iterable[TopicImage]) -> list[tuple[Name, int]]:
    return [(topic.name, index) for topic in topics for index in sorted(topic.partitions)]
