"""Going through the partitions that a change concerns. One pass over ten thousand partitions takes milliseconds, so
there is no index to keep; and nothing sweeps while nothing happens.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from broker_engine.config.topic import TopicDefaults
from broker_engine.metadata.decision import Decision, R_co
from broker_engine.metadata.image import MetadataImage
from broker_engine.metadata.log_ends import NO_LOG_ENDS, LogEnds, of_this_life
from broker_engine.metadata.partition_change import MIN_INSYNC, UNCLEAN, Election, Rules, rules_of, settle
from broker_engine.metadata.parts import PartitionImage, TopicImage
from broker_engine.metadata.records import RESOURCE_TOPIC, ConfigRecord, PartitionRecord, Record
from broker_engine.metadata.snapshot import partition_record
from broker_engine.names import Name

Place = tuple[TopicImage, int, PartitionImage]


def partitions_where(image: MetadataImage, is_concerned: Callable[[PartitionImage], bool]) -> Iterator[Place]:
    for topic in image.topics.values():
        for index, partition in topic.partitions.items():
            if is_concerned(partition):
                yield topic, index, partition


def sweep(
    image: MetadataImage,
    config: TopicDefaults,
    is_concerned: Callable[[PartitionImage], bool],
    change: Callable[[PartitionImage, Rules], PartitionImage],
) -> list[Record]:
    """The records of all partitions that `change` makes different."""
    records, topic_now, rules = list[Record](), None, None
    for topic, index, partition in partitions_where(image, is_concerned):
        if rules is None or topic is not topic_now:
            topic_now, rules = topic, rules_of(image, topic, config)
        changed = change(partition, rules)
        if changed is not partition:
            records.append(partition_record(topic.id, index, changed))
    return records


def led_count(image: MetadataImage, broker_id: int) -> int:
    return sum(1 for _ in partitions_where(image, lambda partition: partition.leader == broker_id))


def replica_count(image: MetadataImage, broker_id: int) -> int:
    return sum(1 for _ in partitions_where(image, lambda partition: broker_id in partition.replicas))


def with_consequences(
    image: MetadataImage, decision: Decision[R_co], config: TopicDefaults, log_ends: LogEnds = NO_LOG_ENDS
) -> Decision[R_co]:
    """A changed min.insync decides anew who is eligible, a permission to elect uncleanly is used where nobody leads.

    A partition whose min.insync changed gets a new partition epoch: its leader can propose an ISR only after it has
    seen the new number. Else it might shrink the ISR by the old one and acknowledge what the eligible ones lack.
    """
    names = dict.fromkeys(
        Name(record.tenant, record.resource_name)
        for record in decision.records
        if isinstance(record, ConfigRecord)
        and record.resource_type == RESOURCE_TOPIC
        and record.name in (MIN_INSYNC, UNCLEAN)
    )
    if not names:
        return decision
    working = image.replay(decision.records, image.next_offset)
    records = [record for name in names for record in _settled(image.topic(name), working, name, config, log_ends)]
    return Decision((*decision.records, *records), decision.results)


def _settled(
    old: TopicImage | None, image: MetadataImage, name: Name, config: TopicDefaults, log_ends: LogEnds
) -> Iterator[PartitionRecord]:
    topic = image.topic(name)
    if topic is None or old is None:
        return
    before, rules = rules_of(image, old, config), rules_of(image, topic, config)
    is_new_permission = rules.is_unclean_allowed and not before.is_unclean_allowed
    election = Election.UNCLEAN if is_new_permission else Election.IF_NEEDED
    for index, partition in topic.partitions.items():
        factor = partition.replication_factor
        is_new_version = before.min_insync(factor) != rules.min_insync(factor)
        ends = of_this_life(image, log_ends.get((topic.id, index), {}))
        changed = settle(partition, partition, rules, election=election, is_new_version=is_new_version, log_ends=ends)
        if changed is not partition:
            yield partition_record(topic.id, index, changed)
