"""What a reader makes of the bytes of a fetch: hidden batches, cut-off tails, damage."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

import pytest

from broker_engine.client.errors import KafkaError
from broker_engine.client.fetching import FetchedBatches, FetchSpot, Isolation, answers, fetch_request, version_limit
from broker_engine.client.model import TopicPartition
from broker_engine.client.positions import PartitionState
from broker_engine.errors import ErrorCode
from broker_engine.ids import NO_TOPIC_ID
from broker_engine.records.builder import NewRecord, build_batch, control_key
from broker_engine.wire.messages.fetch import AbortedTransaction, FetchableTopicResponse, FetchResponse, PartitionData

TARGET = TopicPartition("orders", 0)
ABORT, COMMIT = 0, 1


def spot(offset: int = 0) -> FetchSpot:
    return FetchSpot(TARGET, UUID(int=5), offset, 0, 1 << 20)


def batch(base_offset: int, *values: bytes, producer_id: int = -1, codec: int = 0) -> bytes:
    records = [NewRecord(0, None, value) for value in values]
    is_transactional = producer_id >= 0
    return build_batch(
        records, base_offset=base_offset, producer_id=producer_id, is_transactional=is_transactional, codec=codec
    )


def marker(base_offset: int, producer_id: int, kind: int) -> bytes:
    record = NewRecord(0, control_key(kind), b"\0\0\0\0\0\0")
    return build_batch(
        [record], base_offset=base_offset, producer_id=producer_id, is_transactional=True, is_control=True
    )


def fetched(
    *batches: bytes,
    offset: int = 0,
    isolation: Isolation = "read_uncommitted",
    aborted: Sequence[AbortedTransaction] = (),
    decompressed_bytes_max: int = 1 << 20,
) -> FetchedBatches:
    part = PartitionData(records=memoryview(b"".join(batches)), aborted_transactions=list(aborted))
    return FetchedBatches(spot(offset), part, isolation=isolation, decompressed_bytes_max=decompressed_bytes_max)


def read_all(chunk: FetchedBatches) -> list[bytes | None]:
    values = []
    while (records := chunk.next_records()) is not None:
        values += [record.value for record in records]
    return values


def test_records_before_the_asked_offset_are_left_out() -> None:
    chunk = fetched(batch(10, b"a", b"b", b"c"), offset=11)

    assert read_all(chunk) == [b"b", b"c"]
    assert chunk.next_offset == chunk.end_offset == 13


def test_a_batch_that_is_cut_off_at_the_end_is_left_for_the_next_fetch() -> None:
    chunk = fetched(batch(0, b"a"), batch(1, b"b")[:-3])

    assert read_all(chunk) == [b"a"]
    assert chunk.end_offset == 1


def test_control_batches_are_skipped_and_the_offset_moves_behind_them() -> None:
    chunk = fetched(batch(0, b"a", producer_id=7), marker(1, 7, COMMIT))

    assert read_all(chunk) == [b"a"]
    assert chunk.next_offset == 2


def test_read_committed_hides_what_was_aborted_and_only_that() -> None:
    chunk = fetched(
        batch(0, b"aborted", producer_id=7),
        batch(1, b"committed", producer_id=8),
        marker(2, 7, ABORT),
        marker(3, 8, COMMIT),
        batch(4, b"after", producer_id=7),
        marker(5, 7, COMMIT),
        isolation="read_committed",
        aborted=[AbortedTransaction(producer_id=7, first_offset=0)],
    )

    assert read_all(chunk) == [b"committed", b"after"]


def test_a_wrong_checksum_is_a_named_error() -> None:
    damaged = bytearray(batch(3, b"a"))
    damaged[-1] ^= 1

    with pytest.raises(KafkaError, match="orders-0 at offset 3") as caught:
        fetched(bytes(damaged), offset=3).next_records()
    assert caught.value.code == ErrorCode.CORRUPT_MESSAGE


@pytest.mark.parametrize("codec", [1, 2, 3, 4])
def test_a_batch_may_not_unpack_to_more_than_the_bound(codec: int) -> None:
    bomb = batch(0, b"\0" * 1_000_000, codec=codec)

    with pytest.raises(KafkaError, match="cannot be read"):
        fetched(bomb, decompressed_bytes_max=100_000).next_records()


def test_a_reader_stays_before_a_batch_that_cannot_be_read() -> None:
    damaged = bytearray(batch(1, b"b"))
    damaged[-1] ^= 1
    state = PartitionState(TARGET, 0)
    state.add(fetched(batch(0, b"a"), bytes(damaged)))

    assert [record.value for record in state.take(10)] == [b"a"]
    assert state.error is not None
    assert (state.position, state.fetch_offset, state.buffered_bytes) == (1, 1, 0)


def test_a_reader_takes_what_it_asked_for_over_batches() -> None:
    state = PartitionState(TARGET, 0)
    state.add(fetched(batch(0, b"a", b"b"), batch(2, b"c")))
    state.add(fetched(batch(3, b"d"), offset=3))

    assert [record.offset for record in state.take(3)] == [0, 1, 2]
    assert (state.position, state.fetch_offset) == (3, 4)
    assert [record.offset for record in state.take(3)] == [3]


def test_a_topic_without_an_id_is_fetched_by_name() -> None:
    nameless = FetchSpot(TARGET, NO_TOPIC_ID, 0, 0, 1)

    assert version_limit([spot()]) is None
    assert version_limit([spot(), nameless]) == 12


def test_answers_are_matched_by_id_and_strangers_are_dropped() -> None:
    request = fetch_request([spot()], max_wait_ms=1, min_bytes=1, max_bytes=1, isolation="read_uncommitted")
    response = FetchResponse(
        responses=[
            FetchableTopicResponse(
                topic_id=UUID(int=5), partitions=[PartitionData(partition_index=0, high_watermark=9)]
            ),
            FetchableTopicResponse(topic_id=UUID(int=6), partitions=[PartitionData(partition_index=0)]),
        ]
    )

    assert request.topics[0].partitions[0].fetch_offset == 0
    assert [part.high_watermark for _, part in answers(response, [spot()])] == [9]
