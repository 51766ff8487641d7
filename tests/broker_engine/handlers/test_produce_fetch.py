"""Produce and Fetch over the wire: acks, order, long polls, byte limits, epochs, idempotence, look-ups by time."""

from __future__ import annotations

import time

import pytest

from broker_engine.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from broker_engine.wire.messages.init_producer_id import InitProducerIdRequest
from broker_engine.wire.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from broker_engine.wire.messages.metadata import MetadataRequest
from broker_engine.wire.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from tests.broker_engine.broker_process import BrokerProcess
from tests.broker_engine.handlers.calls import (
    batch_of,
    create,
    fetch,
    fetch_request,
    produce,
    produce_request,
    records_of,
    topic_id_of,
    values_of,
)
from tests.broker_engine.raw_client import RawClient


@pytest.mark.parametrize("durability", ["fsync", "page-cache"])
@pytest.mark.parametrize("acks", [-1, 1])
def test_what_was_acked_is_read_back_in_order(root: RawClient, durability: str, acks: int) -> None:
    topic = create(root, ack_durability=durability)
    offsets = [produce(root, topic, batch_of(b"a%d" % n, b"b%d" % n), acks=acks).base_offset for n in range(5)]
    assert offsets == [0, 2, 4, 6, 8]
    partition = fetch(root, topic, max_wait_ms=5000, min_bytes=600)
    while partition.high_watermark < 10:  # acks=1 does not wait for the disk, readers do
        partition = fetch(root, topic, partition.high_watermark, max_wait_ms=5000)
    assert [record.offset for record in records_of(fetch(root, topic))] == list(range(10))


def test_pipelined_produce_requests_are_appended_and_answered_in_order(root: RawClient) -> None:
    topic = create(root)
    requests = [produce_request(topic, batch_of(b"%d" % number)) for number in range(50)]
    for request in requests:
        root.send_request(request, 9)
    answers = [root.receive(request, 9).responses[0].partition_responses[0] for request in requests]
    assert [answer.base_offset for answer in answers] == list(range(50))
    assert values_of(fetch(root, topic)) == [b"%d" % number for number in range(50)]


def test_a_partition_that_is_not_there_is_unknown(root: RawClient) -> None:
    topic = create(root)
    assert produce(root, topic, batch_of(b"x"), partition=1).error_code == 3
    assert fetch(root, topic, partition=1).error_code == 3


def test_a_batch_above_max_message_bytes_is_refused(root: RawClient) -> None:
    topic = create(root, max_message_bytes="1000")
    assert produce(root, topic, batch_of(b"x" * 2000)).error_code == 10
    assert fetch(root, topic).high_watermark == 0


def test_log_append_time_is_the_brokers(root: RawClient) -> None:
    topic = create(root, message_timestamp_type="LogAppendTime")
    before_ms = int(time.time() * 1000)
    answer = produce(root, topic, batch_of(b"x"))
    assert before_ms <= answer.log_append_time_ms <= before_ms + 60_000
    assert records_of(fetch(root, topic))[0].timestamp == answer.log_append_time_ms


def test_only_the_broker_writes_to_its_own_topics(root: RawClient) -> None:
    assert produce(root, "__telemetry", batch_of(b"x")).error_code == 17


# --- long polls


def test_a_long_poll_wakes_when_a_record_arrives(broker: BrokerProcess, root: RawClient) -> None:
    topic = create(root)
    with RawClient(broker.address()) as reader:
        request = fetch_request(topic, max_wait_ms=20_000)
        started = time.monotonic()
        reader.send_request(request, 12)
        produce(root, topic, batch_of(b"hello"))
        partition = reader.receive(request, 12).responses[0].partitions[0]
    assert values_of(partition) == [b"hello"]
    assert time.monotonic() - started < 10


def test_a_long_poll_ends_empty_when_its_time_is_up(root: RawClient) -> None:
    topic = create(root)
    started = time.monotonic()
    assert values_of(fetch(root, topic, max_wait_ms=300)) == []
    assert 0.25 <= time.monotonic() - started < 10


def test_a_long_poll_waits_for_min_bytes(broker: BrokerProcess, root: RawClient) -> None:
    topic = create(root)
    with RawClient(broker.address()) as reader:
        request = fetch_request(topic, max_wait_ms=20_000, min_bytes=2500)
        reader.send_request(request, 12)
        for _ in range(3):
            produce(root, topic, batch_of(b"x" * 1000))
        partition = reader.receive(request, 12).responses[0].partitions[0]
    assert len(values_of(partition)) == 3


def test_an_error_ends_the_wait_at_once(root: RawClient) -> None:
    topic = create(root)
    started = time.monotonic()
    assert fetch(root, topic, 5, max_wait_ms=20_000).error_code == 1
    assert time.monotonic() - started < 10


def test_one_behind_a_long_poll_waits(root: RawClient) -> None:
    topic = create(root)
    started = time.monotonic()
    poll, other = fetch_request(topic, max_wait_ms=300), MetadataRequest(topics=[])
    root.send_request(poll, 12)
    root.send_request(other, 12)
    root.receive(poll, 12)
    root.receive(other, 12)
    assert time.monotonic() - started >= 0.25


def test_a_deleted_topic_wakes_its_readers(broker: BrokerProcess, root: RawClient) -> None:
    from broker_engine.wire.messages.delete_topics import DeleteTopicsRequest

    topic = create(root)
    with RawClient(broker.address()) as reader:
        request = fetch_request(topic, max_wait_ms=20_000)
        started = time.monotonic()
        reader.send_request(request, 12)
        assert root.call(DeleteTopicsRequest(topic_names=[topic]), 5).responses[0].error_code == 0
        reader.receive(request, 12)
    assert time.monotonic() - started < 10
    assert fetch(root, topic).error_code == 3


# --- limits (KIP-74)


def test_the_first_batch_is_whole_whatever_the_limits(root: RawClient) -> None:
    topic = create(root)
    for _ in range(3):
        produce(root, topic, batch_of(b"x" * 1000))
    for limits in ({"partition_max_bytes": 0}, {"max_bytes": 0}, {"partition_max_bytes": 10, "max_bytes": 10}):
        assert len(values_of(fetch(root, topic, **limits))) == 1


def test_after_the_first_batch_the_limits_hold_over_partitions(root: RawClient) -> None:
    topic = create(root, partitions=2)
    for partition in (0, 1):
        produce(root, topic, batch_of(b"x" * 1000), partition=partition)
    asked = [FetchPartition(partition=index, partition_max_bytes=10_000) for index in (0, 1)]
    topics = [FetchTopic(topic=topic, partitions=asked)]
    answers = (
        root.call(FetchRequest(max_wait_ms=0, min_bytes=1, max_bytes=100, topics=topics), 12).responses[0].partitions
    )
    assert [len(values_of(answer)) for answer in answers] == [1, 0]


def test_a_large_read_goes_by_sendfile_and_arrives_whole(root: RawClient) -> None:
    topic = create(root)
    values = [bytes([number]) * 500_000 for number in range(6)]
    for value in values:
        assert produce(root, topic, batch_of(value)).error_code == 0
    got: list[bytes | None] = []
    while len(got) < len(values):
        got += values_of(fetch(root, topic, len(got), partition_max_bytes=1_200_000))
    assert got == values


# --- epochs, sessions, replicas


def test_the_leader_epoch_fences_both_ways(root: RawClient) -> None:
    topic = create(root)
    produce(root, topic, batch_of(b"x"))
    assert fetch(root, topic, current_leader_epoch=0).error_code == 0
    assert fetch(root, topic, current_leader_epoch=1).error_code == 75
    assert fetch(root, topic, 1, last_fetched_epoch=0).error_code == 0


def test_where_an_epoch_ends(root: RawClient) -> None:
    topic = create(root)
    produce(root, topic, batch_of(b"x", b"y"))
    for epoch, expected in ((0, (0, 2)), (7, (-1, -1))):
        asked = OffsetForLeaderTopic(topic=topic, partitions=[OffsetForLeaderPartition(leader_epoch=epoch)])
        answer = root.call(OffsetForLeaderEpochRequest(topics=[asked]), 4).topics[0].partitions[0]
        assert (answer.error_code, answer.leader_epoch, answer.end_offset) == (0, *expected)


def test_a_client_that_poses_as_a_replica_is_refused(root: RawClient) -> None:
    topic = create(root)
    assert root.call(fetch_request(topic, replica_id=1), 12).error_code == 31


def test_fetch_by_topic_id(root: RawClient) -> None:
    topic = create(root)
    produce(root, topic, batch_of(b"by id"))
    asked = FetchTopic(topic_id=topic_id_of(root, topic), partitions=[FetchPartition(partition_max_bytes=10_000)])
    answer = root.call(FetchRequest(max_wait_ms=0, topics=[asked]), 16).responses[0]
    assert answer.topic_id == topic_id_of(root, topic)
    assert values_of(answer.partitions[0]) == [b"by id"]


def test_committed_readers_get_an_empty_list_of_aborted_ones(root: RawClient) -> None:
    topic = create(root)
    produce(root, topic, batch_of(b"x"))
    assert fetch(root, topic, isolation_level=1).aborted_transactions == []
    assert fetch(root, topic, isolation_level=0).aborted_transactions is None


# --- idempotence


def test_a_resent_batch_is_appended_once(root: RawClient) -> None:
    topic = create(root)
    producer = root.call(InitProducerIdRequest(transactional_id=None), 4)
    assert producer.error_code == 0
    identity = {"producer_id": producer.producer_id, "producer_epoch": producer.producer_epoch}
    first, second = (batch_of(b"x", base_sequence=sequence, **identity) for sequence in (0, 1))
    answers = [produce(root, topic, batch) for batch in (first, first, second, first)]
    assert [(answer.error_code, answer.base_offset) for answer in answers] == [(0, 0), (0, 0), (0, 1), (0, 0)]
    assert produce(root, topic, batch_of(b"x", base_sequence=7, **identity)).error_code == 45
    assert fetch(root, topic).high_watermark == 2


def test_producer_ids_are_never_given_twice(root: RawClient) -> None:
    ids = {root.call(InitProducerIdRequest(transactional_id=None), 0).producer_id for _ in range(1100)}
    assert len(ids) == 1100


def test_a_producer_id_without_its_epoch_is_refused(root: RawClient) -> None:
    assert root.call(InitProducerIdRequest(transactional_id=None, producer_id=5), 4).error_code == 42


# --- ListOffsets


def list_offset(client: RawClient, topic: str, timestamp: int, version: int = 9) -> tuple[int, int, int]:
    asked = ListOffsetsTopic(name=topic, partitions=[ListOffsetsPartition(timestamp=timestamp)])
    answer = client.call(ListOffsetsRequest(replica_id=-1, topics=[asked]), version).topics[0].partitions[0]
    return answer.error_code, answer.timestamp, answer.offset


def test_offsets_by_name_and_by_time(root: RawClient) -> None:
    topic = create(root)
    assert list_offset(root, topic, -1) == (0, -1, 0)
    for _ in range(3):
        produce(root, topic, batch_of(b"x"))
    times = [record.timestamp for record in records_of(fetch(root, topic))]
    assert list_offset(root, topic, -1) == (0, -1, 3)
    assert list_offset(root, topic, -2) == (0, -1, 0)
    assert list_offset(root, topic, -3) == (0, max(times), times.index(max(times)))
    assert list_offset(root, topic, times[0]) == (0, times[0], 0)
    assert list_offset(root, topic, times[-1] + 1) == (0, -1, -1)
    assert list_offset(root, topic, -5) == (0, -1, -1)


@pytest.mark.parametrize(("timestamp", "version"), [(-3, 6), (-4, 7), (-5, 8), (-6, 10), (-7, 11)])
def test_a_constant_that_the_version_does_not_know_is_refused(root: RawClient, timestamp: int, version: int) -> None:
    assert list_offset(root, create(root), timestamp, version)[0] == 35
