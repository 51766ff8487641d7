"""A leader where nobody in sync lives and the topic allows any: whose log is the longest, of those who say so."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from broker_engine.metadata.controller import (
    LogEnd,
    fence_broker,
    find_leaders,
    unfence_broker,
    waiting_for_leader,
)
from broker_engine.metadata.image import MetadataImage
from broker_engine.metadata.parts import PartitionImage
from tests.broker_engine.metadata.builders import CONFIG, after, cluster, partition_of, register, root, with_topic

ANY = {"unclean_leader_election_enable": "true", "min_insync_replicas": "1"}


def fenced(image: MetadataImage, *broker_ids: int) -> MetadataImage:
    for broker_id in broker_ids:
        image = after(image, fence_broker(image, broker_id, image.brokers[broker_id].epoch, config=CONFIG).records)
    return image


def unfenced(image: MetadataImage, *broker_ids: int) -> MetadataImage:
    for broker_id in broker_ids:
        image = after(image, unfence_broker(image, broker_id, image.brokers[broker_id].epoch, config=CONFIG).records)
    return image


def left_behind(**configs: str) -> MetadataImage:
    """Broker 3 was the last one in sync, and is gone; 1 and 2 live and lack records."""
    return unfenced(fenced(with_topic(cluster(3), [1, 2, 3], **{**ANY, **configs}), 1, 2, 3), 1, 2)


def waiting(image: MetadataImage) -> list[tuple[str, int]]:
    return [(topic.name.name, index) for topic, index, _ in waiting_for_leader(image, CONFIG)]


def find(image: MetadataImage, ends: Mapping[int, tuple[int, int]], *, lives_ago: int = 0) -> PartitionImage:
    """`ends` is what brokers say of t-0: (last epoch, end offset)."""
    topic = image.topic(root("t"))
    assert topic is not None
    key = (topic.id, 0)
    said = {member: LogEnd(*end, image.brokers[member].epoch - lives_ago) for member, end in ends.items()}
    decision = find_leaders(image, [key], {key: said} if said else {}, config=CONFIG)
    assert len(decision.results) == len(decision.records)
    return partition_of(after(image, decision.records))


def test_nobody_leads_before_the_replicas_were_asked() -> None:
    image = left_behind()
    assert (partition_of(image).leader, partition_of(image).elr) == (-1, (3,))
    assert waiting(image) == [("t", 0)]


@pytest.mark.parametrize(("one", "two", "leader"), [((0, 7), (0, 9), 2), ((0, 9), (0, 7), 1), ((1, 3), (0, 9), 1)])
def test_the_longest_log_leads_and_is_counted(one: tuple[int, int], two: tuple[int, int], leader: int) -> None:
    partition = find(left_behind(), {1: one, 2: two})
    assert (partition.leader, partition.isr, partition.elr) == (leader, (leader,), ())
    assert (partition.unclean_elections, partition.leader_recovery_state) == (1, 1)


def test_who_does_not_answer_is_not_waited_for() -> None:
    assert find(left_behind(), {2: (0, 0)}).leader == 2


def test_where_nobody_answers_the_first_of_them_leads_all_the_same() -> None:
    partition = find(left_behind(), {})
    assert (partition.leader, partition.unclean_elections) == (1, 1)


def test_what_a_former_life_said_counts_as_silence() -> None:
    assert find(left_behind(), {2: (9, 9)}, lives_ago=1).leader == 1


def test_without_the_topics_permission_nobody_is_chosen() -> None:
    image = left_behind(unclean_leader_election_enable="false")
    assert waiting(image) == []
    assert find(image, {1: (0, 7), 2: (0, 9)}) == partition_of(image)


def test_where_nobody_lives_there_is_nobody_to_wait_for() -> None:
    image = fenced(left_behind(), 1, 2)
    assert waiting(image) == []
    assert find(image, {1: (0, 7)}) == partition_of(image)


def test_an_eligible_one_that_came_back_meanwhile_leads_on() -> None:
    image = unfenced(left_behind(), 3)
    assert find(image, {1: (5, 70), 2: (5, 90)}) == partition_of(image)
    assert (partition_of(image).leader, partition_of(image).unclean_elections) == (3, 0)


def test_what_can_be_recovered_without_a_loss_is() -> None:
    """Everybody crashed: of those who were in sync last, as many as min.insync says have all of it among them."""
    image = with_topic(cluster(3), [1, 2, 3], ack_durability="fsync", **ANY)
    for broker_id in (1, 2, 3):
        image = unfenced(after(image, register(image, broker_id).records), broker_id)
    assert partition_of(image).last_known_elr == (3,)
    partition = find(image, {1: (0, 7), 3: (0, 7)})
    assert (partition.leader, partition.unclean_elections) == (3, 0)
    assert find(image, {1: (0, 7)}).unclean_elections == 1
