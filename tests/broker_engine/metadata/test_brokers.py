"""Brokers come, are fenced, come back, stop and go: who leads, who is in sync, who is eligible afterwards."""

from __future__ import annotations

from uuid import UUID

import pytest

from broker_engine.errors import BrokerError, ErrorCode
from broker_engine.metadata.controller import (
    alter_partition,
    controlled_shutdown,
    fence_broker,
    unfence_broker,
    unregister_broker,
)
from broker_engine.metadata.image import EMPTY_IMAGE, MetadataImage
from broker_engine.metadata.parts import EndpointImage
from broker_engine.metadata.telemetry_topic import TELEMETRY_TOPIC
from tests.broker_engine.metadata.builders import (
    CONFIG,
    after,
    broker,
    cluster,
    partition_of,
    proposal,
    register,
    with_topic,
)


def fenced(image: MetadataImage, *broker_ids: int) -> MetadataImage:
    for broker_id in broker_ids:
        image = after(image, fence_broker(image, broker_id, image.brokers[broker_id].epoch, config=CONFIG).records)
    return image


def unfenced(image: MetadataImage, broker_id: int) -> MetadataImage:
    return after(image, unfence_broker(image, broker_id, image.brokers[broker_id].epoch, config=CONFIG).records)


def back(image: MetadataImage, broker_id: int, **given: object) -> MetadataImage:
    return unfenced(after(image, register(image, broker_id, **given).records), broker_id)


def shut_down(image: MetadataImage, broker_id: int) -> tuple[MetadataImage, int]:
    decision = controlled_shutdown(image, broker_id, image.brokers[broker_id].epoch, config=CONFIG)
    return after(image, decision.records), decision.results[0]


def led(image: MetadataImage, index: int = 0) -> tuple[int, tuple[int, ...], tuple[int, ...]]:
    partition = partition_of(image, index)
    return partition.leader, partition.isr, partition.elr


# --- registration


def test_the_first_broker_registers_and_goes_on_at_once() -> None:
    endpoint = EndpointImage("demo", "localhost", 9092, "PLAINTEXT")
    quorum = EndpointImage("controller", "localhost", 9093, "SASL_PLAINTEXT")
    decision = register(EMPTY_IMAGE, 4, endpoints=[endpoint], controller_endpoint=quorum, rack="r")
    came = EMPTY_IMAGE.replay(decision.records, 12).brokers[4]
    assert (came.epoch, came.rack, came.endpoints, came.is_fenced) == (12, "r", (endpoint,), False)
    assert (came.directory_id, came.controller_endpoint) == (UUID(int=4), quorum)


def test_every_other_broker_comes_fenced() -> None:
    image = after(cluster(1), register(cluster(1), 2).records)
    assert image.brokers[2].is_fenced
    assert not unfenced(image, 2).brokers[2].is_fenced


def test_the_same_life_registers_once() -> None:
    assert register(cluster(1), 1, incarnation_id=UUID(int=1)).records == ()


def test_another_directory_is_refused_while_the_broker_lives() -> None:
    image = after(cluster(1), register(cluster(1), 2, directory_id=UUID(int=20)).records)
    with pytest.raises(BrokerError) as caught:
        register(image, 2, directory_id=UUID(int=21), is_old_session_alive=True)
    assert caught.value.code is ErrorCode.DUPLICATE_BROKER_REGISTRATION
    assert register(image, 2, directory_id=UUID(int=21)).records


def test_the_same_directory_is_taken_at_once_for_its_process_is_dead() -> None:
    image = with_topic(after(cluster(2), register(cluster(2), 3).records), [1, 2])
    image = back(image, 1, is_old_session_alive=True)
    assert led(image) == (2, (2,), ())


def test_a_cluster_of_one_leads_again_under_new_epochs() -> None:
    """Whether it stopped cleanly or not: nobody else has anything."""
    image = with_topic(cluster(1), [1], [1])
    image = after(image, register(image, 1).records)
    assert led(image) == (1, (1,), ())
    assert (partition_of(image).leader_epoch, partition_of(image, 1).leader_epoch) == (1, 1)


def test_a_cluster_of_one_has_nobody_to_move_its_leaders_to() -> None:
    image = with_topic(cluster(1), [1])
    assert shut_down(image, 1) == (image, 0)


# --- an unclean stop


def test_after_a_crash_a_broker_is_out_of_sync_until_it_caught_up() -> None:
    image = back(with_topic(cluster(3), [1, 2, 3]), 1)
    assert led(image) == (2, (2, 3), ())
    decision = alter_partition(
        image, broker_id=2, broker_epoch=image.brokers[2].epoch, changes=[proposal(image, 2, 3, 1)], config=CONFIG
    )
    assert led(after(image, decision.records)) == (2, (2, 3, 1), ())


def test_a_crashed_broker_is_not_eligible_but_one_that_stopped_cleanly_is() -> None:
    """RF 3, min.insync 2: when 1 and 2 are gone both are eligible, for the high watermark has stood still since."""
    image = fenced(with_topic(cluster(3), [1, 2, 3]), 1, 2)
    assert led(image) == (3, (3,), (2,))
    crashed = after(image, register(image, 2).records)
    assert led(crashed) == (3, (3,), ())
    assert partition_of(crashed).last_known_elr == (2,)
    clean = after(image, register(image, 2, previous_broker_epoch=image.brokers[2].epoch).records)
    assert led(clean) == (3, (3,), (2,))


def test_an_epoch_from_an_older_life_is_no_clean_stop() -> None:
    image = fenced(with_topic(cluster(3), [1, 2, 3]), 1, 2)
    assert led(after(image, register(image, 2, previous_broker_epoch=0).records)) == (3, (3,), ())


def test_when_all_crashed_nobody_is_eligible_and_all_are_known() -> None:
    image = with_topic(cluster(3), [1, 2, 3])
    for broker_id in (1, 2):
        image = back(image, broker_id)
    assert led(image) == (3, (3,), ())
    assert led(fenced(image, 3)) == (-1, (), (3,))
    image = back(image, 3)
    assert led(image) == (-1, (), ())
    assert partition_of(image).last_known_elr == (3, 2)


def test_a_wiped_disk_is_never_elected_even_as_the_last_one() -> None:
    image = with_topic(after(cluster(1), register(cluster(1), 2).records), [1])
    image = after(image, register(image, 1, directory_id=UUID(int=8)).records)
    image = fenced(image, 1)
    image = back(image, 1, directory_id=UUID(int=9))
    assert led(image) == (-1, (), ())
    assert partition_of(image).last_known_elr == ()


# --- fencing


def test_a_fenced_brokers_leaders_move_and_it_leaves_every_isr() -> None:
    image = fenced(with_topic(cluster(3), [1, 2, 3], [2, 3, 1], [3, 1, 2]), 1)
    assert [led(image, n) for n in range(3)] == [(2, (2, 3), ()), (2, (2, 3), ()), (3, (3, 2), ())]
    assert [partition_of(image, n).leader_epoch for n in range(3)] == [1, 0, 0]
    assert [partition_of(image, n).partition_epoch for n in range(3)] == [1, 1, 1]


def test_fencing_twice_or_a_former_life_changes_nothing() -> None:
    image = fenced(cluster(2), 1)
    assert fence_broker(image, 1, image.brokers[1].epoch, config=CONFIG).records == ()
    assert fence_broker(image, 2, 999, config=CONFIG).records == ()
    assert fence_broker(image, 7, 0, config=CONFIG).records == ()


def test_a_fenced_member_of_the_elr_is_elected_when_it_comes_back() -> None:
    image = fenced(with_topic(cluster(3), [1, 2, 3]), 1, 2, 3)
    assert led(image) == (-1, (), (2, 3))
    image = unfenced(image, 2)
    assert led(image) == (2, (2,), (3,))
    assert partition_of(image).leader_epoch == 4


def test_with_min_insync_one_only_the_last_one_is_eligible() -> None:
    """What it alone acknowledged nobody else has."""
    image = fenced(with_topic(cluster(3), [1, 2, 3], min_insync_replicas="1"), 1, 2, 3)
    assert led(image) == (-1, (), (3,))
    assert led(unfenced(image, 1)) == (-1, (), (3,))


def test_a_broker_of_the_past_cannot_be_unfenced() -> None:
    with pytest.raises(BrokerError) as caught:
        unfence_broker(cluster(1, broker(2, fenced=True)), 2, 77, config=CONFIG)
    assert caught.value.code is ErrorCode.STALE_BROKER_EPOCH


# --- going


def test_a_controlled_shutdown_moves_every_leader() -> None:
    image, left_count = shut_down(with_topic(cluster(3), [1, 2, 3], [3, 1, 2]), 1)
    assert left_count == 0
    assert [led(image, n) for n in range(2)] == [(2, (2, 3), ()), (3, (3, 2), ())]
    assert image.brokers[1].is_shutting_down
    assert not image.brokers[1].is_fenced
    assert shut_down(image, 1)[0] == image


def test_nobody_who_shuts_down_comes_back_into_an_isr() -> None:
    image, _ = shut_down(with_topic(cluster(3), [1, 2, 3]), 3)
    decision = alter_partition(
        image, broker_id=1, broker_epoch=image.brokers[1].epoch, changes=[proposal(image, 1, 2, 3)], config=CONFIG
    )
    assert decision.results[0].error_code is ErrorCode.INELIGIBLE_REPLICA


def test_a_broker_with_replicas_is_not_unregistered() -> None:
    image = with_topic(cluster(3), [1, 2])
    with pytest.raises(BrokerError, match="still holds 1 replica"):
        unregister_broker(image, 2)
    assert 3 not in after(image, unregister_broker(image, 3).records).brokers
    with pytest.raises(BrokerError) as caught:
        unregister_broker(image, 9)
    assert caught.value.code is ErrorCode.BROKER_ID_NOT_REGISTERED


# --- __telemetry


def homes(image: MetadataImage) -> dict[int, tuple[int, ...]]:
    topic = image.topic(TELEMETRY_TOPIC)
    assert topic is not None
    return {index: partition.replicas for index, partition in topic.partitions.items()}


def test_every_broker_has_its_own_partition_of_telemetry() -> None:
    image = after(EMPTY_IMAGE, register(EMPTY_IMAGE, 2).records)
    assert homes(image) == {0: (2,), 1: (2,), 2: (2,)}
    image = after(image, register(image, 1).records)
    image = after(image, register(image, 3).records)
    assert homes(image) == {0: (2,), 1: (1,), 2: (2,), 3: (3,)}
    own = partition_of(image, 3, TELEMETRY_TOPIC)
    assert (own.leader, own.isr, own.elr) == (-1, (), (3,))
    assert partition_of(unfenced(image, 3), 3, TELEMETRY_TOPIC).leader == 3


def test_a_broker_with_a_new_disk_writes_telemetry_again() -> None:
    """Also a number's that is no broker's: partition 0 stands on broker 1."""
    image = after(EMPTY_IMAGE, register(EMPTY_IMAGE, 1).records)
    image = back(image, 2)
    image = back(image, 1, directory_id=UUID(int=98))
    image = back(image, 2, directory_id=UUID(int=99))
    assert [partition_of(image, index, TELEMETRY_TOPIC).leader for index in range(3)] == [1, 1, 2]


def test_who_is_unregistered_leaves_its_telemetry_to_another() -> None:
    image = after(EMPTY_IMAGE, register(EMPTY_IMAGE, 1).records)
    image = back(image, 2)
    image = after(image, unregister_broker(image, 2).records)
    assert (homes(image)[2], partition_of(image, 2, TELEMETRY_TOPIC).leader) == ((1,), 1)
