"""ElectLeaders on demand, and the balance of preferred leaders."""

from __future__ import annotations

from uuid import UUID

import pytest

from broker_engine.errors import ErrorCode
from broker_engine.metadata.controller import (
    Election,
    LogEnd,
    balance_leaders,
    elect_leaders,
    every_partition,
    fence_broker,
    unfence_broker,
)
from broker_engine.metadata.image import MetadataImage
from broker_engine.metadata.isr import alter_partition
from tests.broker_engine.metadata.builders import (
    CONFIG,
    after,
    cluster,
    partition_of,
    proposal,
    register,
    root,
    with_topic,
)


def elect(image: MetadataImage, election: Election, index: int = 0) -> tuple[MetadataImage, ErrorCode]:
    decision = elect_leaders(image, [(root("t"), index)], election, config=CONFIG)
    return after(image, decision.records), decision.results[0].error_code


def fence(image: MetadataImage, broker_id: int) -> MetadataImage:
    return after(image, fence_broker(image, broker_id, image.brokers[broker_id].epoch, config=CONFIG).records)


def unfence(image: MetadataImage, broker_id: int) -> MetadataImage:
    return after(image, unfence_broker(image, broker_id, image.brokers[broker_id].epoch, config=CONFIG).records)


def caught_up(image: MetadataImage, index: int, *isr: int) -> MetadataImage:
    leader = partition_of(image, index).leader
    change = proposal(image, *isr, index=index)
    epoch = image.brokers[leader].epoch
    decision = alter_partition(image, broker_id=leader, broker_epoch=epoch, changes=[change], config=CONFIG)
    assert decision.results[0].error_code is ErrorCode.NONE
    return after(image, decision.records)


def test_the_preferred_leader_is_elected_once_it_is_in_sync() -> None:
    image = with_topic(cluster(3), [1, 2, 3])
    assert elect(image, Election.PREFERRED)[1] is ErrorCode.ELECTION_NOT_NEEDED
    image = fence(image, 1)
    assert elect(image, Election.PREFERRED)[1] is ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE
    image = unfence(image, 1)
    assert elect(image, Election.PREFERRED)[1] is ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE
    image, code = elect(caught_up(image, 0, 2, 3, 1), Election.PREFERRED)
    assert code is ErrorCode.NONE
    assert (partition_of(image).leader, partition_of(image).leader_epoch) == (1, 2)
    assert partition_of(image).isr == (2, 3, 1)


def test_an_unclean_election_by_hand_needs_a_live_replica_and_no_permission() -> None:
    image = with_topic(cluster(3), [1, 2, 3], min_insync_replicas="1")
    assert elect(image, Election.UNCLEAN)[1] is ErrorCode.ELECTION_NOT_NEEDED
    for broker_id in (1, 2, 3):
        image = fence(image, broker_id)
    assert elect(image, Election.UNCLEAN)[1] is ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE
    image, code = elect(unfence(image, 1), Election.UNCLEAN)
    assert code is ErrorCode.NONE
    assert (partition_of(image).leader, partition_of(image).unclean_elections) == (1, 1)


def test_of_several_the_one_that_was_in_sync_last_is_elected_uncleanly() -> None:
    image = with_topic(cluster(4), [1, 2, 3, 4], min_insync_replicas="2")
    for broker_id in (1, 2, 3, 4):
        image = fence(image, broker_id)
    assert partition_of(image).elr == (3, 4)
    image, code = elect(unfence(unfence(image, 1), 2), Election.UNCLEAN)
    assert (code, partition_of(image).leader) == (ErrorCode.NONE, 1)


def test_who_has_the_most_is_elected_uncleanly_where_that_is_known() -> None:
    """Broker 1 came back with an empty disk: first among the replicas, but last of those who could lead."""
    image = with_topic(cluster(3), [1, 2, 3], min_insync_replicas="1")
    for broker_id in (2, 3, 1):
        image = fence(image, broker_id)
    image = after(image, register(image, 1, directory_id=UUID(int=70)).records)
    image = after(image, register(image, 1, directory_id=UUID(int=71)).records)
    image = unfence(unfence(unfence(image, 1), 2), 3)
    assert (partition_of(image).leader, partition_of(image).elr) == (-1, ())
    topic = image.topic(root("t"))
    assert topic is not None
    ends = {1: LogEnd(-1, 0, image.brokers[1].epoch), 2: LogEnd(0, 7, image.brokers[2].epoch)}
    asked = {(topic.id, 0): {**ends, 3: LogEnd(0, 9, image.brokers[3].epoch - 1)}}
    decision = elect_leaders(image, [(root("t"), 0)], Election.UNCLEAN, config=CONFIG, log_ends=asked)
    assert partition_of(after(image, decision.records)).leader == 2


@pytest.mark.parametrize("place", [(root("absent"), 0), (root("t"), 7)])
def test_a_partition_that_is_not_there_is_3(place: tuple[object, int]) -> None:
    image = with_topic(cluster(1), [1])
    decision = elect_leaders(image, [place], Election.PREFERRED, config=CONFIG)  # type: ignore[list-item]
    assert decision.results[0].error_code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_every_partition_is_asked_for_once() -> None:
    image = with_topic(cluster(2), [1, 2], [2, 1])
    everything = every_partition(image.topics.values())
    decision = elect_leaders(image, [*everything, *everything], Election.PREFERRED, config=CONFIG)
    assert [(result.partition, result.error_code) for result in decision.results] == [
        (0, ErrorCode.ELECTION_NOT_NEEDED), (1, ErrorCode.ELECTION_NOT_NEEDED)]  # fmt: skip


# --- balance


def after_a_restart_of_1() -> MetadataImage:
    """Ten partitions that 1 should lead are led by others, and 1 is in sync again with the first eight."""
    image = with_topic(cluster(3), *([1, 2, 3] for _ in range(10)), *([2, 3, 1] for _ in range(10)))
    image = unfence(fence(image, 1), 1)
    for index in range(8):
        image = caught_up(image, index, 2, 3, 1)
    return image


def test_preferred_leaders_come_back_where_they_can() -> None:
    image = after_a_restart_of_1()
    decision = balance_leaders(image, 10, config=CONFIG)
    assert [result.error_code for result in decision.results] == [ErrorCode.NONE] * 8
    leaders = [partition_of(after(image, decision.records), index).leader for index in range(10)]
    assert leaders == [1] * 8 + [2, 2]


def test_a_small_imbalance_is_left_alone() -> None:
    image = after_a_restart_of_1()
    image = after(image, balance_leaders(image, 10, config=CONFIG).records)
    image = caught_up(image, 8, 2, 3, 1)
    assert balance_leaders(image, 20, config=CONFIG).records == ()
    assert len(balance_leaders(image, 19, config=CONFIG).records) == 1


def test_a_balanced_cluster_costs_no_record() -> None:
    assert balance_leaders(with_topic(cluster(3), [1, 2, 3], [2, 3, 1]), 0, config=CONFIG).records == ()
