"""Fetch requests and what comes back: pure, used by the consumer and by `fetch_once`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal
from uuid import UUID

from broker_engine.client.errors import KafkaError
from broker_engine.client.model import Record, TopicPartition
from broker_engine.errors import BrokerError, ErrorCode
from broker_engine.ids import NO_TOPIC_ID
from broker_engine.records.decode import decode_records
from broker_engine.records.header import BatchHeader, iter_batches, parse_header, verify_crc
from broker_engine.wire.messages.fetch import (
    AbortedTransaction,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    PartitionData,
)

Isolation = Literal["read_uncommitted", "read_committed"]
ISOLATION_LEVELS: dict[Isolation, int] = {"read_uncommitted": 0, "read_committed": 1}

VERSION_BY_NAME_MAX = 12
"""The last version that names topics; from 13 on they go by id, which an old or foreign cluster may not have."""

_ABORT_MARKER = 0


@dataclass(frozen=True, slots=True)
class FetchSpot:
    """One partition to read from."""

    target: TopicPartition
    topic_id: UUID
    offset: int
    leader_epoch: int
    max_bytes: int


def version_limit(spots: Iterable[FetchSpot]) -> int | None:
    return VERSION_BY_NAME_MAX if any(spot.topic_id == NO_TOPIC_ID for spot in spots) else None


def fetch_request(
    spots: Sequence[FetchSpot], *, max_wait_ms: int, min_bytes: int, max_bytes: int, isolation: Isolation
) -> FetchRequest:
    """Without a session: every request says all that it wants. The order of `spots` is the order of service."""
    topics: dict[str, FetchTopic] = {}
    parts: dict[str, list[FetchPartition]] = {}
    for spot in spots:
        name = spot.target.topic
        if name not in topics:
            parts[name] = []
            topics[name] = FetchTopic(topic=name, topic_id=spot.topic_id, partitions=parts[name])
        parts[name].append(_fetch_partition(spot))
    return FetchRequest(
        max_wait_ms=max_wait_ms,
        min_bytes=min_bytes,
        max_bytes=max_bytes,
        isolation_level=ISOLATION_LEVELS[isolation],
        topics=list(topics.values()),
    )


def _fetch_partition(spot: FetchSpot) -> FetchPartition:
    return FetchPartition(
        partition=spot.target.partition,
        current_leader_epoch=spot.leader_epoch,
        fetch_offset=spot.offset,
        partition_max_bytes=spot.max_bytes,
    )


def answers(response: FetchResponse, spots: Sequence[FetchSpot]) -> Iterator[tuple[FetchSpot, PartitionData]]:
    """Each partition's answer beside what was asked; what was not asked for is left out."""
    asked = {spot.target: spot for spot in spots}
    names = {spot.topic_id: spot.target.topic for spot in spots}
    for topic in response.responses:
        name = topic.topic or names.get(topic.topic_id, "")
        for part in topic.partitions:
            spot = asked.get(TopicPartition(name, part.partition_index))
            if spot is not None:
                yield spot, part


class FetchedBatches:
    """The batches of one answer, decoded one by one as the reader gets to them."""

    def __init__(
        self, spot: FetchSpot, part: PartitionData, *, isolation: Isolation, decompressed_bytes_max: int
    ) -> None:
        self.target = spot.target
        self.next_offset = spot.offset
        data = part.records if isinstance(part.records, bytes | memoryview) else b""
        self.size_bytes = len(data)
        self.end_offset = _end_offset(data, spot.offset)
        self._batches = iter_batches(data)
        self._decompressed_bytes_max = decompressed_bytes_max
        self._is_read_committed = isolation == "read_committed"
        self._aborted = sorted(part.aborted_transactions or (), key=_first_offset)
        self._aborted_producers: set[int] = set()

    def next_records(self) -> list[Record] | None:
        """The next batch's records from `next_offset` on (maybe none), None at the end. Moves `next_offset` behind."""
        batch = next(self._batches, None)
        if batch is None:
            return None
        header = parse_header(batch)
        records = [] if self._is_hidden(batch, header) else self._decode(batch)
        position = self.next_offset
        self.next_offset = max(header.next_offset, position)
        topic, partition = self.target
        return [
            Record(topic, partition, offset, timestamp, key, value, headers)
            for offset, timestamp, key, value, headers in records
            if offset >= position
        ]

    def _decode(self, batch: memoryview) -> Sequence[tuple[int, int, bytes | None, bytes | None, _Headers]]:
        try:
            if not verify_crc(batch):
                raise BrokerError(ErrorCode.CORRUPT_MESSAGE, "the checksum is wrong")
            return decode_records(batch, max_bytes=self._decompressed_bytes_max)
        except BrokerError as error:
            where = f"the batch of {self.target} at offset {self.next_offset} cannot be read"
            raise KafkaError(error.code, f"{where}: {error.message}") from error

    def _is_hidden(self, batch: memoryview, header: BatchHeader) -> bool:
        """Control batches always; with read_committed also the batches of aborted transactions."""
        if not self._is_read_committed:
            return header.is_control
        while self._aborted and self._aborted[0].first_offset <= header.last_offset:
            self._aborted_producers.add(self._aborted.pop(0).producer_id)
        if header.is_control:
            if _is_abort_marker(self._decode(batch)[0][2]):
                self._aborted_producers.discard(header.producer_id)
            return True
        return header.is_transactional and header.producer_id in self._aborted_producers


_Headers = tuple[tuple[str, bytes | None], ...]


def _end_offset(data: bytes | memoryview, offset: int) -> int:
    """Where the next fetch goes on, told by the headers alone."""
    for batch in iter_batches(data):
        offset = max(offset, parse_header(batch).next_offset)
    return offset


def _first_offset(transaction: AbortedTransaction) -> int:
    return transaction.first_offset


def _is_abort_marker(key: bytes | None) -> bool:
    return key is not None and int.from_bytes(key[2:4], "big") == _ABORT_MARKER
