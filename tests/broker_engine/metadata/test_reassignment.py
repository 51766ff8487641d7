"""Reassignments: grow, shrink, move, change of mind, cancel; done when those who come are in sync."""

from __future__ import annotations

import pytest

from broker_engine.errors import ErrorCode
from broker_engine.metadata.controller import (
    Reassignment,
    ReassignmentResult,
    alter_partition,
    alter_reassignments,
    fence_broker,
    list_reassignments,
)
from broker_engine.metadata.image import MetadataImage
from broker_engine.metadata.parts import PartitionImage
from tests.broker_engine.metadata.builders import CONFIG, after, cluster, partition_of, proposal, root, with_topic


def reassign(
    image: MetadataImage, *replicas: int, name: str = "t", index: int = 0
) -> tuple[MetadataImage, ReassignmentResult]:
    decision = alter_reassignments(image, [Reassignment(root(name), index, replicas)], config=CONFIG)
    return after(image, decision.records), decision.results[0]


def begun(image: MetadataImage, *replicas: int) -> MetadataImage:
    image, result = reassign(image, *replicas)
    assert result.error_code is ErrorCode.NONE
    return image


def cancel(image: MetadataImage) -> tuple[MetadataImage, ErrorCode]:
    decision = alter_reassignments(image, [Reassignment(root("t"), 0, None)], config=CONFIG)
    return after(image, decision.records), decision.results[0].error_code


def in_sync(image: MetadataImage, *isr: int) -> tuple[MetadataImage, ErrorCode]:
    leader = partition_of(image).leader
    epoch = image.brokers[leader].epoch
    decision = alter_partition(
        image, broker_id=leader, broker_epoch=epoch, changes=[proposal(image, *isr)], config=CONFIG
    )
    return after(image, decision.records), decision.results[0].error_code


def move_of(partition: PartitionImage) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
    return partition.replicas, partition.adding, partition.removing


def test_growing_from_one_to_three_asks_for_two_in_sync_only_at_the_end() -> None:
    image = begun(with_topic(cluster(3), [1]), 1, 2, 3)
    assert move_of(partition_of(image)) == ((1, 2, 3), (2, 3), ())
    assert partition_of(image).replication_factor == 1
    image, _ = in_sync(image, 1, 2)
    assert move_of(partition_of(image)) == ((1, 2, 3), (2, 3), ())
    image, code = in_sync(image, 1, 2, 3)
    assert code is ErrorCode.NEW_LEADER_ELECTED, "the leader waits for the image that says how many must be in sync now"
    assert move_of(partition_of(image)) == ((1, 2, 3), (), ())
    assert (partition_of(image).isr, partition_of(image).leader, partition_of(image).leader_epoch) == ((1, 2, 3), 1, 0)


def test_a_move_ends_with_a_new_leader_under_a_new_epoch() -> None:
    image = begun(with_topic(cluster(4), [1, 2]), 3, 4)
    assert move_of(partition_of(image)) == ((3, 4, 1, 2), (3, 4), (1, 2))
    assert partition_of(image).leader == 1
    image, code = in_sync(image, 1, 2, 3)
    assert code is ErrorCode.NONE
    image, code = in_sync(image, 1, 2, 3, 4)
    assert code is ErrorCode.NEW_LEADER_ELECTED
    partition = partition_of(image)
    assert (move_of(partition), partition.isr, partition.leader) == (((3, 4), (), ()), (3, 4), 3)
    assert partition.leader_epoch == 1


def test_shrinking_is_done_at_once_when_those_who_stay_are_in_sync() -> None:
    image = begun(with_topic(cluster(3), [1, 2, 3]), 2)
    partition = partition_of(image)
    assert (move_of(partition), partition.isr, partition.leader) == (((2,), (), ()), (2,), 2)
    assert partition.leader_epoch == 1


def test_shrinking_waits_for_who_stays_but_is_not_in_sync() -> None:
    image = with_topic(cluster(3), [1, 2, 3])
    image, _ = in_sync(image, 1, 3)
    image = begun(image, 2)
    assert move_of(partition_of(image)) == ((2, 1, 3), (), (1, 3))
    image, code = in_sync(image, 1, 3, 2)
    assert (code, partition_of(image).replicas) == (ErrorCode.NEW_LEADER_ELECTED, (2,))


def test_another_order_only_changes_who_is_preferred() -> None:
    image = begun(with_topic(cluster(3), [1, 2, 3]), 3, 1, 2)
    partition = partition_of(image)
    assert (move_of(partition), partition.leader, partition.leader_epoch) == (((3, 1, 2), (), ()), 1, 0)


def test_it_is_not_complete_while_too_few_of_the_final_ones_are_in_sync() -> None:
    image = with_topic(cluster(4), [1, 2, 3])
    image, _ = in_sync(image, 1, 2)
    image = begun(image, 2, 3, 4)
    image, code = in_sync(image, 1, 4)
    assert code is ErrorCode.NONE
    assert move_of(partition_of(image)) == ((2, 3, 4, 1), (4,), (1,))
    image, code = in_sync(image, 1, 4, 3)
    assert code is ErrorCode.NEW_LEADER_ELECTED
    assert (move_of(partition_of(image)), partition_of(image).isr) == (((2, 3, 4), (), ()), (4, 3))


def test_a_second_thought_keeps_adding_whom_it_keeps_and_drops_the_rest() -> None:
    image = begun(with_topic(cluster(4), [1]), 1, 2, 3)
    image = begun(image, 1, 3, 4)
    assert move_of(partition_of(image)) == ((1, 3, 4), (3, 4), ())
    assert partition_of(image).leader_epoch == 1


def test_whom_a_second_thought_drops_goes_at_the_end_where_it_counts_as_in_sync() -> None:
    image, _ = in_sync(begun(with_topic(cluster(4), [1]), 1, 2, 3), 1, 2)
    image = begun(image, 1, 4)
    assert move_of(partition_of(image)) == ((1, 4, 2), (4,), (2,))
    image, code = in_sync(image, 1, 2, 4)
    assert (code, partition_of(image).replicas, partition_of(image).isr) == (ErrorCode.NONE, (1, 4), (1, 4))


def test_whom_a_second_thought_drops_stays_where_only_it_may_lead() -> None:
    """Else the log of the only one that has everything would be deleted."""
    image, _ = in_sync(begun(with_topic(cluster(3), [1]), 2, 3), 1, 2)
    for broker_id in (1, 2):
        image = after(image, fence_broker(image, broker_id, image.brokers[broker_id].epoch, config=CONFIG).records)
    assert 2 in (*partition_of(image).isr, *partition_of(image).elr)
    image = begun(image, 1, 3)
    assert 2 in partition_of(image).removing


def test_cancelling_gives_back_what_was() -> None:
    image = begun(with_topic(cluster(4), [1, 2]), 3, 4)
    image, _ = in_sync(image, 1, 2, 3)
    image, code = cancel(image)
    partition = partition_of(image)
    assert code is ErrorCode.NONE
    assert (move_of(partition), partition.isr, partition.leader) == (((1, 2), (), ()), (1, 2), 1)
    assert partition.leader_epoch == 1
    assert cancel(image)[1] is ErrorCode.NO_REASSIGNMENT_IN_PROGRESS


def test_cancelling_is_refused_while_it_would_leave_too_few_in_sync() -> None:
    image = begun(with_topic(cluster(5), [1, 2, 3]), 4, 5, 1)
    image, _ = in_sync(image, 1, 4)
    assert cancel(image)[1] is ErrorCode.INVALID_REPLICA_ASSIGNMENT
    image, _ = in_sync(image, 1, 4, 2)
    assert cancel(image)[1] is ErrorCode.NONE


def test_a_leader_that_dies_during_a_move_is_replaced_by_who_is_in_sync() -> None:
    image = begun(with_topic(cluster(4), [1, 2]), 3, 4)
    image, _ = in_sync(image, 1, 3)
    image = after(image, fence_broker(image, 1, image.brokers[1].epoch, config=CONFIG).records)
    assert (partition_of(image).leader, partition_of(image).isr) == (3, (3,))
    assert partition_of(image).is_reassigning


@pytest.mark.parametrize(
    ("replicas", "code"),
    [
        ((), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ((1, 1), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ((1, 9), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ((-1,), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
    ],
)
def test_an_assignment_that_cannot_be_is_39(replicas: tuple[int, ...], code: ErrorCode) -> None:
    image = with_topic(cluster(3), [1, 2])
    changed, result = reassign(image, *replicas)
    assert (changed, result.error_code) == (image, code)


def test_what_is_not_there_is_3_and_what_stands_twice_is_refused() -> None:
    image = with_topic(cluster(3), [1, 2])
    assert reassign(image, 1, name="absent")[1].error_code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert reassign(image, 1, index=5)[1].error_code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    twice = [Reassignment(root("t"), 0, (1,)), Reassignment(root("t"), 0, (2,))]
    (result,) = alter_reassignments(image, twice, config=CONFIG).results
    assert result.error_code is ErrorCode.INVALID_REPLICA_ASSIGNMENT


def test_a_caller_may_forbid_that_the_factor_changes() -> None:
    image = with_topic(cluster(3), [1, 2])
    wanted = [Reassignment(root("t"), 0, (1, 2, 3))]
    (result,) = alter_reassignments(image, wanted, config=CONFIG, allow_factor_change=False).results
    assert result.error_code is ErrorCode.INVALID_REPLICATION_FACTOR


def test_those_under_way_are_listed() -> None:
    image = with_topic(cluster(3), [1], [2])
    assert list_reassignments(image.topics.values()) == []
    image = begun(image, 1, 3)
    ((topic, index, partition),) = list_reassignments(image.topics.values())
    assert (topic.name, index, partition.adding) == (root("t"), 0, (3,))
