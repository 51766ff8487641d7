"""Who tells of what: a partition's leader of it, one speaker of what nobody leads, nobody of what others lead."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast
from uuid import UUID

from broker_engine.metadata.image import MetadataImage
from broker_engine.metadata.records import PartitionRecord, RemoveTopicRecord, TopicRecord
from broker_engine.names import ROOT, Name
from broker_engine.server.local_partition import LocalPartition
from broker_engine.telemetry.roster import Roster, speaker_of
from broker_engine.telemetry.rows import cluster_row, partition_row
from broker_engine.telemetry.schema import Key, Kind, decode_row, encode_row
from tests.broker_engine.metadata.builders import after, broker, cluster

TOPIC_ID = UUID(int=7 << 64)
ORDERS = Name(ROOT, "orders")


@dataclass(eq=False)
class Local:
    """As much of a LocalPartition as the roster looks at."""

    index: int
    topic_id: UUID = TOPIC_ID
    name: Name = ORDERS


def local(index: int) -> LocalPartition:
    return cast(LocalPartition, Local(index))


def led(image: MetadataImage, partition: int, leader: int, epoch: int = 0) -> MetadataImage:
    isr = (leader,) if leader > 0 else ()
    record = PartitionRecord(
        topic_id=TOPIC_ID, partition=partition, replicas=(1, 2), isr=isr, leader=leader, leader_epoch=epoch
    )
    return after(image, (record,))


def three_brokers() -> MetadataImage:
    return cluster(3, TopicRecord(tenant=ROOT, name="orders", topic_id=TOPIC_ID))


def roster(node_id: int) -> Roster:
    def key(name: Name, index: int) -> Key:
        return Key(node_id, 1, Kind.PARTITION, name.tenant, name.name, index)

    return Roster(node_id, key, lambda key: key.partition % 2)


def test_a_broker_tells_of_what_it_leads_and_not_of_what_it_follows() -> None:
    image = led(led(three_brokers(), 0, leader=1), 1, leader=2)
    news = roster(1).follow(image, [local(0), local(1)], is_speaker=True)
    assert [entry.key.partition for entry in news.entries.values()] == [0]


def test_only_what_changed_is_news() -> None:
    one = roster(1)
    image, locals_ = led(led(three_brokers(), 0, leader=1), 1, leader=1), [local(0), local(1)]
    assert len(one.follow(image, locals_, is_speaker=False).entries) == 2
    news = one.follow(led(image, 1, leader=1, epoch=1), locals_, is_speaker=False)
    assert [entry.key.partition for entry in news.entries.values()] == [1]
    assert [entry.key.partition for _, entry in one.of_turn(0)] == [0]


def test_replicas_that_catch_up_are_looked_at_though_nothing_else_happens() -> None:
    one, image = roster(1), led(led(three_brokers(), 0, leader=1), 1, leader=1)
    settled = PartitionRecord(topic_id=TOPIC_ID, partition=1, replicas=(1, 2), isr=(1, 2), leader=1)
    one.follow(after(image, (settled,)), [local(0), local(1)], is_speaker=False)
    assert [entry.key.partition for _, entry in one.unsettled()] == [0]


def test_a_partition_that_another_leads_now_is_handed_over_without_a_last_word() -> None:
    one, locals_ = roster(1), [local(0)]
    image = led(three_brokers(), 0, leader=1)
    one.follow(image, locals_, is_speaker=False)
    news = one.follow(led(image, 0, leader=2, epoch=1), locals_, is_speaker=False)
    assert [key.partition for key in news.handed_over] == [0]
    assert news.gone == []


def test_a_deleted_topic_gets_a_last_word() -> None:
    one = roster(1)
    image = led(three_brokers(), 0, leader=1)
    one.follow(image, [local(0)], is_speaker=False)
    news = one.follow(after(image, (RemoveTopicRecord(topic_id=TOPIC_ID),)), [], is_speaker=False)
    assert [key.partition for key in news.gone] == [0]


def test_the_speaker_alone_tells_of_a_partition_without_a_leader() -> None:
    image = led(three_brokers(), 0, leader=-1, epoch=4)
    assert roster(2).follow(image, [local(0)], is_speaker=False).entries == {}
    speaker = roster(3)
    [entry] = speaker.follow(image, [], is_speaker=True).entries.values()
    row = partition_row(entry, now_ms=5)
    assert (row.leader, row.leader_epoch, row.high_watermark, row.isr) == (-1, 4, -1, [])
    assert decode_row(Kind.PARTITION, encode_row(row)) == row


def test_replicas_without_a_leader_are_counted_where_they_are() -> None:
    image = led(three_brokers(), 0, leader=-1)
    counts = []
    for node_id in (1, 2, 3):
        one = roster(node_id)
        one.follow(image, [], is_speaker=False)
        counts.append(one.leaderless_here_count)
    assert counts == [1, 1, 0]


def test_unclean_elections_are_counted_over_the_whole_cluster() -> None:
    image = after(
        three_brokers(),
        tuple(
            PartitionRecord(
                topic_id=TOPIC_ID, partition=index, replicas=(1, 2), isr=(2,), leader=2, unclean_elections=2
            )
            for index in (0, 1)
        ),
    )
    one = roster(1)
    one.follow(image, [], is_speaker=False)
    assert one.unclean_election_count == 4


def test_the_controller_speaks_for_all_or_the_first_live_broker_where_it_is_none() -> None:
    image = cluster(3)
    assert speaker_of(image, controller=2) == 2
    assert speaker_of(image, controller=9) == 1
    fenced = after(image, (broker(1, fenced=True),))
    assert speaker_of(fenced, controller=1) == 2
    assert speaker_of(cluster(0), controller=-1) == -1


def test_the_cluster_row_names_every_member() -> None:
    image = after(cluster(2), (broker(2, rack="b", fenced=True),))
    row = cluster_row(image, controller=1, controller_epoch=3, unclean_election_count=4, now_ms=9)
    assert [(member.broker, member.rack, member.is_fenced) for member in row.brokers] == [
        (1, "", False),
        (2, "b", True),
    ]
    assert decode_row(Kind.CLUSTER, encode_row(row)) == row
