"""Who leads where nobody in sync and nobody eligible lives, and the topic allows that records are lost.

`settle` leaves such a partition without a leader. The controller asks those who live how far their logs go
(server/leader_recovery.py), not for long, and the longest of those who answered leads; where nobody did, whoever was in
sync last. What can be recovered without a loss (recovery.py) is.
"""

from __future__ import annotations

from collections.abc import Iterable

from broker_engine.config.topic import TopicDefaults
from broker_engine.ids import NO_LEADER
from broker_engine.metadata.decision import Decision
from broker_engine.metadata.image import MetadataImage
from broker_engine.metadata.log_ends import LogEnds, PartitionKey, of_this_life
from broker_engine.metadata.partition_change import Election, rules_of, settle
from broker_engine.metadata.parts import PartitionImage
from broker_engine.metadata.records import Record
from broker_engine.metadata.recovery import Recovered, is_waiting, recover_leaders
from broker_engine.metadata.snapshot import partition_record
from broker_engine.metadata.sweep import Place, partitions_where


def waiting_for_leader(image: MetadataImage, config: TopicDefaults) -> list[Place]:
    """Whose leader depends on how far logs go: to be recovered, or to be elected uncleanly."""
    places = partitions_where(image, _is_leaderless)
    return [place for place in places if is_waiting(place[2]) or _may_be_unclean(image, place, config)]


def find_leaders(
    image: MetadataImage, asked: Iterable[PartitionKey], log_ends: LogEnds, *, config: TopicDefaults
) -> Decision[Recovered]:
    """`asked` are those of which log ends were asked for: others may have come to be leaderless since."""
    recovered = recover_leaders(image, log_ends, config=config)
    working = image.replay(recovered.records, image.next_offset)
    records, results = list[Record](recovered.records), list(recovered.results)
    for topic_id, index in asked:
        topic = working.topics.get(topic_id)
        partition = topic.partitions.get(index) if topic else None
        if topic is None or partition is None or not _may_be_unclean(working, (topic, index, partition), config):
            continue
        ends = of_this_life(working, log_ends.get((topic_id, index), {}))
        rules = rules_of(working, topic, config)
        changed = settle(partition, partition, rules, election=Election.UNCLEAN, log_ends=ends)
        records.append(partition_record(topic_id, index, changed))
        results.append(Recovered(topic.name, index, changed.leader, ends.get(changed.leader), is_unclean=True))
    return Decision(tuple(records), tuple(results))


def _is_leaderless(partition: PartitionImage) -> bool:
    return partition.leader == NO_LEADER


def _may_be_unclean(image: MetadataImage, place: Place, config: TopicDefaults) -> bool:
    topic, _index, partition = place
    if not _is_leaderless(partition):
        return False
    rules = rules_of(image, topic, config)
    return rules.is_unclean_allowed and any(map(rules.is_active, partition.replicas))
