"""A leader after a crash of everybody who was in sync: whose log is the longest, of enough of them."""

from __future__ import annotations

from uuid import UUID

import pytest

from broker_engine.metadata.controller import LogEnd, recover_leaders, unfence_broker, waiting_for_leader
from broker_engine.metadata.image import MetadataImage
from broker_engine.metadata.parts import PartitionImage
from tests.broker_engine.metadata.builders import CONFIG, after, cluster, partition_of, register, root, with_topic


def crash(image: MetadataImage, *broker_ids: int, **given: object) -> MetadataImage:
    """Each comes back at once, without a clean stop."""
    for broker_id in broker_ids:
        image = after(image, register(image, broker_id, **given).records)
        image = after(image, unfence_broker(image, broker_id, image.brokers[broker_id].epoch, config=CONFIG).records)
    return image


def recover(image: MetadataImage, **ends: tuple[int, int]) -> PartitionImage:
    """`_1=(epoch, end offset)` is what broker 1 says of t-0."""
    topic = image.topic(root("t"))
    assert topic is not None
    said = {
        int(key[1:]): LogEnd(epoch, end_offset, image.brokers[int(key[1:])].epoch)
        for key, (epoch, end_offset) in ends.items()
    }
    decision = recover_leaders(image, {(topic.id, 0): said}, config=CONFIG)
    assert len(decision.results) == len(decision.records)
    return partition_of(after(image, decision.records))


def three(durability: str) -> MetadataImage:
    image = crash(with_topic(cluster(3), [1, 2, 3], ack_durability=durability), 1, 2, 3)
    assert partition_of(image).last_known_elr == (3, 2)
    return image


@pytest.mark.parametrize("durability", ["fsync", "page-cache"])
def test_as_many_are_asked_as_min_insync_says(durability: str) -> None:
    image = three(durability)
    assert recover(image, _3=(0, 7)) == partition_of(image)
    assert recover(image, _3=(0, 7), _2=(0, 9)).leader == 2
    assert recover(image, _3=(0, 9), _2=(0, 7)).leader == 3


def test_who_lost_flushed_records_to_rot_does_not_lead_because_it_came_first() -> None:
    """Broker 2 had 10 on disk; a bit turned, and its start after the crash took that for a torn tail and cut it."""
    image = three("fsync")
    assert recover(image, _2=(0, 8)) == partition_of(image)
    partition = recover(image, _2=(0, 8), _3=(0, 10))
    assert (partition.leader, partition.isr, partition.elr, partition.last_known_elr) == (3, (3,), (), (2,))
    assert (partition.unclean_elections, partition.leader_recovery_state) == (0, 0)


def test_whose_disk_was_wiped_is_not_waited_for() -> None:
    image = crash(crash(three("fsync"), 3, directory_id=UUID(int=7)), 3, directory_id=UUID(int=8))
    assert partition_of(image).last_known_elr == (2,)
    assert recover(image, _2=(0, 7)).leader == 2


def test_a_later_epoch_counts_more_than_a_longer_log() -> None:
    assert recover(three("page-cache"), _3=(1, 7), _2=(0, 90)).leader == 3


def test_an_epoch_that_nobody_led_in_is_rot_and_does_not_lead() -> None:
    image = three("fsync")
    assert recover(image, _3=(1 << 26, 90), _2=(0, 7)).leader == 2
    assert recover(image, _3=(1 << 26, 90), _2=(1 << 25, 7)).leader == 3


def test_who_was_out_of_sync_before_has_no_say() -> None:
    """Broker 1 crashed while two others were in sync: it may lack what they acknowledged meanwhile."""
    image = three("page-cache")
    assert recover(image, _3=(0, 7), _1=(5, 99)) == partition_of(image)


def test_a_former_life_has_no_say() -> None:
    image = three("fsync")
    topic = image.topic(root("t"))
    assert topic is not None
    stale = {2: LogEnd(0, 7, image.brokers[2].epoch - 1)}
    assert recover_leaders(image, {(topic.id, 0): stale}, config=CONFIG).records == ()
    assert recover_leaders(image, {(UUID(int=1), 0): stale}, config=CONFIG).records == ()


def test_the_only_replica_leads_again_when_its_broker_is_back() -> None:
    image = crash(with_topic(cluster(2), [1], ack_durability="page-cache"), 1)
    assert [(topic.name, index) for topic, index, _ in waiting_for_leader(image, CONFIG)] == [(root("t"), 0)]
    partition = recover(image, _1=(0, 5))
    assert (partition.leader, partition.isr, partition.last_known_elr) == (1, (1,), ())
    assert partition.leader_epoch == 2


def test_a_cluster_of_one_leads_again_whatever_it_was_before() -> None:
    image = crash(with_topic(cluster(1), [1]), 1, 1)
    assert (partition_of(image).leader, waiting_for_leader(image, CONFIG)) == (1, [])


def test_a_partition_that_is_led_or_has_an_eligible_replica_does_not_wait() -> None:
    image = with_topic(cluster(3), [1, 2, 3])
    assert waiting_for_leader(image, CONFIG) == []
    assert recover(image, _1=(0, 5)) == partition_of(image)
