"""Transactional batches over the wire: verified once, fenced, in order; and what read_committed readers get of them."""

from __future__ import annotations

import pytest

from broker_engine.errors import ErrorCode
from broker_engine.records.control import read_marker
from broker_engine.records.header import iter_batches, parse_header
from broker_engine.wire.messages.describe_producers import DescribeProducersRequest, TopicRequest
from broker_engine.wire.messages.fetch import FetchRequest
from broker_engine.wire.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from tests.broker_engine.broker_process import BrokerProcess
from tests.broker_engine.cluster.cluster_process import wait_for
from tests.broker_engine.handlers.calls import (
    batch_of,
    create,
    fetch,
    fetch_request,
    produce,
    produce_request,
    values_of,
)
from tests.broker_engine.handlers.txn_producer import (
    READ_COMMITTED,
    TxnProducer,
    stable_offset,
    wait_until_stable,
    write_markers,
)
from tests.broker_engine.raw_client import RawClient


@pytest.fixture
def producer(root: RawClient) -> TxnProducer:
    return TxnProducer(root).init()


def begun(producer: TxnProducer, topic: str, *values: bytes) -> str:
    assert producer.add(topic) == 0
    assert producer.send(topic, *(values or (b"first",))).error_code == 0
    return topic


# --- verification


@pytest.mark.parametrize(
    ("version", "code"),
    [
        (7, ErrorCode.INVALID_TXN_STATE),
        (10, ErrorCode.INVALID_TXN_STATE),
        (11, ErrorCode.TRANSACTION_ABORTABLE),
    ],
)
def test_a_partition_that_was_not_added_is_refused(producer: TxnProducer, version: int, code: ErrorCode) -> None:
    topic = create(producer.client, partitions=2)
    assert producer.add(topic, 1) == 0
    assert producer.send(topic, b"x", version=version).error_code == code
    assert stable_offset(producer.client, topic) == 0


@pytest.mark.parametrize("version", [9, 11, 12])
def test_an_old_epoch_and_an_unknown_id_are_refused_at_every_version(root: RawClient, version: int) -> None:
    topic = create(root)
    old = TxnProducer(root).init()
    new = TxnProducer(root, old.name).init()
    assert new.epoch > old.epoch
    assert new.add(topic) == 0
    assert old.send(topic, b"zombie", version=version).error_code == ErrorCode.INVALID_PRODUCER_EPOCH
    stranger = TxnProducer(root)
    stranger.id, stranger.epoch = new.id, new.epoch
    answer = stranger.send(topic, b"stranger", version=version)
    assert answer.error_code == ErrorCode.INVALID_PRODUCER_ID_MAPPING


def test_a_transactional_batch_without_an_id_refuses_the_request(root: RawClient) -> None:
    topic = create(root)
    batch = batch_of(b"x", producer_id=1, producer_epoch=0, base_sequence=0, is_transactional=True)
    assert produce(root, topic, batch).error_code == ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED


def test_batches_of_two_producers_in_one_request_are_refused(producer: TxnProducer) -> None:
    topic = create(producer.client, partitions=2)
    producer.add(topic, 0, 1)
    request = produce_request(topic, producer.batch(topic, b"a"))
    other = produce_request(topic, producer.batch(topic, b"b", producer_id=producer.id + 1), partition=1)
    request.topic_data[0].partition_data = [
        *request.topic_data[0].partition_data,
        *other.topic_data[0].partition_data,
    ]
    request.transactional_id = producer.name
    answers = producer.client.call(request, 9).responses[0].partition_responses
    assert [each.error_code for each in answers] == [ErrorCode.INVALID_PRODUCER_ID_MAPPING] * 2


def test_one_partition_that_was_not_added_does_not_keep_the_others_out(producer: TxnProducer) -> None:
    topic = create(producer.client, partitions=2)
    producer.add(topic, 0)
    request = produce_request(topic, producer.batch(topic, b"a"))
    request.topic_data[0].partition_data = [
        *request.topic_data[0].partition_data,
        *produce_request(topic, producer.batch(topic, b"b"), partition=1).topic_data[0].partition_data,
    ]
    request.topic_data[0].partition_data[1].records = producer.batch(topic, b"b", partition=1)
    request.transactional_id = producer.name
    answers = producer.client.call(request, 9).responses[0].partition_responses
    assert [each.error_code for each in answers] == [0, ErrorCode.INVALID_TXN_STATE]


def test_pipelined_batches_stay_in_order_while_the_first_is_verified(producer: TxnProducer) -> None:
    topic, client = create(producer.client), producer.client
    producer.add(topic)
    requests = [produce_request(topic, producer.batch(topic, b"%d" % number)) for number in range(8)]
    for request in requests:
        request.transactional_id = producer.name
        client.send_request(request, 9)
    answers = [client.receive(request, 9).responses[0].partition_responses[0] for request in requests]
    assert [(each.error_code, each.base_offset) for each in answers] == [(0, number) for number in range(8)]


def test_a_plain_batch_inside_of_an_open_transaction_is_refused(producer: TxnProducer) -> None:
    topic = begun(producer, create(producer.client))
    refused = producer.send(topic, b"plain", is_transactional=False)
    assert refused.error_code == ErrorCode.INVALID_TXN_STATE


def test_a_resend_answers_its_offset_also_after_the_end(producer: TxnProducer) -> None:
    topic = begun(producer, create(producer.client))
    assert producer.send(topic, b"first", base_sequence=0).base_offset == 0
    producer.end()
    wait_until_stable(producer.client, topic)
    answer = producer.send(topic, b"first", base_sequence=0)
    assert (answer.error_code, answer.base_offset) == (0, 0)
    late = producer.send(topic, b"second", base_sequence=1)
    assert late.error_code == ErrorCode.INVALID_TXN_STATE, "nobody added the partition again"


# --- transaction version 2


def test_version_2_adds_the_partition_with_its_first_batch(producer: TxnProducer) -> None:
    topic = create(producer.client)
    for number in range(3):
        answer = producer.send(topic, b"%d" % number, version=12)
        assert (answer.error_code, producer.epoch) == (0, number), "each end raises the epoch"
        assert producer.end(version=5).error_code == 0
    wait_until_stable(producer.client, topic)
    assert values_of_committed(producer.client, topic) == [b"0", b"1", b"2"]


def test_version_2_fences_a_batch_of_the_transaction_before(producer: TxnProducer) -> None:
    topic = create(producer.client)
    producer.send(topic, b"a", version=12)
    old_epoch = producer.epoch
    producer.end(version=5)
    wait_until_stable(producer.client, topic)
    late = producer.send(topic, b"late", version=12, producer_epoch=old_epoch, base_sequence=1)
    assert late.error_code == ErrorCode.INVALID_PRODUCER_EPOCH


def test_an_unknown_producer_of_version_2_begins_with_sequence_0(producer: TxnProducer) -> None:
    topic = create(producer.client)
    refused = producer.send(topic, b"a", version=12, base_sequence=3)
    assert refused.error_code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


# --- read_committed


def values_of_committed(client: RawClient, topic: str) -> list[bytes | None]:
    """Of a topic in which nothing was aborted."""
    answer = fetch(client, topic, isolation_level=READ_COMMITTED)
    assert answer.aborted_transactions == []
    answer.records = b"".join(batch for batch in iter_batches(answer.records) if not parse_header(batch).is_control)
    return values_of(answer)


def test_open_data_is_not_read_and_aborted_data_is_named(producer: TxnProducer) -> None:
    topic, client = begun(producer, create(producer.client)), producer.client
    opened = fetch(client, topic, isolation_level=READ_COMMITTED)
    assert (opened.high_watermark, opened.last_stable_offset, opened.records) == (1, 0, b"")
    assert values_of(fetch(client, topic)) == [b"first"]
    assert fetch(client, topic).aborted_transactions is None
    producer.end(is_commit=False)
    wait_until_stable(client, topic)
    aborted = fetch(client, topic, isolation_level=READ_COMMITTED)
    assert [(each.producer_id, each.first_offset) for each in aborted.aborted_transactions] == [(producer.id, 0)]
    begun(producer, topic, b"second")
    producer.end()
    wait_until_stable(client, topic)
    behind = fetch(client, topic, 2, isolation_level=READ_COMMITTED)
    assert behind.aborted_transactions == []
    (_, marker) = iter_batches(behind.records)
    found = read_marker(marker)
    assert found is not None
    assert found.is_commit


def test_the_latest_offset_of_committed_records_is_the_last_stable_one(producer: TxnProducer) -> None:
    topic = begun(producer, create(producer.client))
    assert [latest(producer.client, topic, level) for level in (0, 1)] == [1, 0]
    producer.end()
    wait_until_stable(producer.client, topic)
    assert [latest(producer.client, topic, level) for level in (0, 1)] == [2, 2]


def latest(client: RawClient, topic: str, isolation_level: int) -> int:
    asked = ListOffsetsTopic(name=topic, partitions=[ListOffsetsPartition(partition_index=0, timestamp=-1)])
    response = client.call(ListOffsetsRequest(isolation_level=isolation_level, topics=[asked]), 7)
    return int(response.topics[0].partitions[0].offset)


def test_a_long_poll_of_a_committed_reader_ends_with_the_marker(broker: BrokerProcess, producer: TxnProducer) -> None:
    topic = create(producer.client)
    with RawClient(broker.address()) as reader:
        request: FetchRequest = fetch_request(topic, isolation_level=READ_COMMITTED, max_wait_ms=15_000, min_bytes=1000)
        reader.send_request(request, 12)
        begun(producer, topic, b"x" * 1000)
        assert reader.is_open(0.3), "what is open is no news"
        producer.end()
        answer = reader.receive(request, 12).responses[0].partitions[0]
    assert answer.last_stable_offset == 2
    assert len(answer.records) > 1000


# --- markers and producers


def test_markers_by_hand(root: RawClient, acme: RawClient) -> None:
    topic = create(root)
    assert write_markers(root, topic, 900, producer_epoch=4, coordinator_epoch=7) == [0]
    assert write_markers(root, topic, 900, producer_epoch=4, coordinator_epoch=7) == [0]
    assert write_markers(root, topic, 900, producer_epoch=3, coordinator_epoch=7) == [ErrorCode.INVALID_PRODUCER_EPOCH]
    assert write_markers(root, topic, 900, producer_epoch=4, coordinator_epoch=6) == [
        ErrorCode.TRANSACTION_COORDINATOR_FENCED
    ]
    assert write_markers(root, topic, 900, producer_epoch=5, coordinator_epoch=7, partitions=[0, 9]) == [0, 3]
    assert write_markers(root, "absent", 900) == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
    assert write_markers(acme, topic, 900) == [ErrorCode.CLUSTER_AUTHORIZATION_FAILED]
    raised = write_markers(root, topic, 900, version=2, transaction_version=2, producer_epoch=6, coordinator_epoch=7)
    assert raised == [0]


def test_an_operator_ends_a_transaction_that_hangs(producer: TxnProducer) -> None:
    topic, client = begun(producer, create(producer.client)), producer.client
    state = described(client, topic)[producer.id]
    assert (state.producer_epoch, state.last_sequence, state.current_txn_start_offset) == (producer.epoch, 0, 0)
    codes = write_markers(
        client, topic, producer.id, producer_epoch=producer.epoch, coordinator_epoch=max(0, state.coordinator_epoch)
    )
    assert codes == [0]
    assert described(client, topic)[producer.id].current_txn_start_offset == -1
    assert stable_offset(client, topic) == 2


def test_producers_are_described_by_the_leader_and_to_who_sees_the_topic(root: RawClient, acme: RawClient) -> None:
    topic = create(acme)
    produce(acme, topic, batch_of(b"x", producer_id=5, producer_epoch=2, base_sequence=0))
    state = described(acme, topic)[5]
    assert (state.producer_epoch, state.last_sequence, state.coordinator_epoch) == (2, 0, -1)
    assert described(root, f"acme/{topic}")[5] == state
    asked = DescribeProducersRequest(topics=[TopicRequest(name=topic, partition_indexes=[0])])
    assert root.call(asked, 0).topics[0].partitions[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def described(client: RawClient, topic: str) -> dict[int, object]:
    asked = DescribeProducersRequest(topics=[TopicRequest(name=topic, partition_indexes=[0])])
    (answer,) = client.call(asked, 0).topics[0].partitions
    assert answer.error_code == 0
    return {state.producer_id: state for state in answer.active_producers}


def test_two_tenants_with_one_transactional_id_do_not_meet(acme: RawClient, globex: RawClient) -> None:
    mine, theirs = TxnProducer(acme, "same").init(), TxnProducer(globex, "same").init()
    assert (mine.epoch, theirs.epoch) == (0, 0)
    assert mine.id != theirs.id
    topic = create(acme)
    begun(mine, topic)
    assert mine.end().error_code == 0
    wait_for("the marker", lambda: stable_offset(acme, topic) == 2)
