"""Who leads when everybody who was in sync came back without a clean stop: the longest log among enough of them.

All of `last_known_elr` had every acknowledged record when they left, for the high watermark has stood still since. A
crash may have cost some of them a tail that was only in the page cache. What min.insync promises is that fewer than
that many lose it; so of any min.insync of them one has everything, and whoever has the highest last epoch, then the
highest end, has it too (Raft's rule for votes). Not an unclean election: nothing acknowledged is given up that was
promised to be kept.

As many are asked where records are flushed before they are acknowledged. Above its recovery point, which is up to a
minute old, a log that is opened after a crash cannot tell a flushed batch that rotted from one that was never whole,
and ends before either: one copy alone may lack what it once had on disk.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

from broker_engine.config.topic import TopicDefaults
from broker_engine.ids import NO_LEADER
from broker_engine.metadata.decision import Decision
from broker_engine.metadata.image import MetadataImage
from broker_engine.metadata.log_ends import LogEnd, LogEnds, longest, of_this_life
from broker_engine.metadata.partition_change import Rules, rules_of, settle
from broker_engine.metadata.parts import PartitionImage
from broker_engine.metadata.records import Record
from broker_engine.metadata.snapshot import partition_record
from broker_engine.names import Name


@dataclass(frozen=True, slots=True)
class Recovered:
    name: Name
    partition: int
    leader: int
    log_end: LogEnd | None
    """None where it did not say."""
    is_unclean: bool = False


def is_waiting(partition: PartitionImage) -> bool:
    return partition.leader == NO_LEADER and not (partition.isr or partition.elr) and bool(partition.last_known_elr)


def recover_leaders(image: MetadataImage, log_ends: LogEnds, *, config: TopicDefaults) -> Decision[Recovered]:
    """A leader for each partition of which enough log ends are known. The rest waits for more."""
    records, results = list[Record](), list[Recovered]()
    for (topic_id, index), ends in log_ends.items():
        topic = image.topics.get(topic_id)
        partition = topic.partitions.get(index) if topic else None
        if topic is None or partition is None or not is_waiting(partition):
            continue
        known = {m: end for m, end in of_this_life(image, ends).items() if m in partition.last_known_elr}
        rules = rules_of(image, topic, config)
        if len(known) < needed_count(partition, rules):
            continue
        leader = longest(sorted(known), known, epoch_max=partition.leader_epoch)
        assert leader is not None, "at least one is needed"
        target = dataclasses.replace(partition, isr=(leader,))
        changed = settle(partition, target, rules)
        records.append(partition_record(topic_id, index, changed))
        results.append(Recovered(topic.name, index, leader, known[leader]))
    return Decision(tuple(records), tuple(results))


def needed_count(partition: PartitionImage, rules: Rules) -> int:
    """How many must say how far their logs go."""
    return min(rules.needed(partition), len(partition.last_known_elr))
