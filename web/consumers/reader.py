"""Serves one subscription: finds where to start, then reads the log as far as the client's credit goes.

What was read but not yet paid for is held here, at most one poll's worth; nothing more is read until it is gone.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from api.gateway.record_json import record_json, record_size_bytes
from broker_engine.client import Client, Consumer, OffsetOutOfRange, Record, TopicPartition
from broker_engine.client.offsets import EARLIEST, LATEST, list_offsets
from web.consumers.frames import Frame, Offsets, Start, Subscribe, Tail
from web.consumers.protocol import Credit

POLL_MS = 500
FETCH_BYTES_MAX = 512 << 10
BATCH_RECORDS_MAX = 500
BATCH_BYTES_MAX = 512 << 10


class Port(Protocol):
    """The consumer, as far as a reader needs it."""

    def credit(self) -> Credit: ...
    async def wait_for_credit(self) -> None: ...
    async def subscribed(self, positions: Mapping[int, int], high_watermarks: Mapping[int, int]) -> None: ...
    async def records(self, batch: list[Frame], size_bytes: int, high_watermarks: Mapping[int, int]) -> None: ...
    async def caught_up(self) -> None: ...


class Reader:
    def __init__(self, client: Client, request: Subscribe, port: Port) -> None:
        self._client = client
        self._request = request
        self._port = port
        self._held: list[Record] = []
        self._high_watermarks: dict[int, int] = {}
        self._is_caught_up = False

    async def run(self) -> None:
        """Until cancelled, or KafkaError."""
        earliest, latest = await self._ends()
        positions = start_positions(self._request.start, earliest, latest)
        self._high_watermarks = dict(latest)
        await self._port.subscribed(positions, latest)
        topic = self._request.topic
        consumer = Consumer(self._client, max_wait_ms=POLL_MS, max_bytes=FETCH_BYTES_MAX)
        try:
            consumer.assign({TopicPartition(topic, partition): offset for partition, offset in positions.items()})
            while True:
                await self._wait_for_credit(consumer)
                await self._read_some(consumer)
        finally:
            await consumer.close()

    async def _wait_for_credit(self, consumer: Consumer) -> None:
        """The consumer fetches ahead of us: without credit it must not."""
        if self._port.credit().is_open:
            return
        consumer.pause(consumer.assignment)
        await self._port.wait_for_credit()
        consumer.resume(consumer.assignment)

    async def _ends(self) -> tuple[dict[int, int], dict[int, int]]:
        view = await self._client.topic(self._request.topic)
        partitions = self._request.partitions or tuple(sorted(view.partitions))
        targets = [TopicPartition(self._request.topic, partition) for partition in partitions]
        found = [await list_offsets(self._client, dict.fromkeys(targets, end)) for end in (EARLIEST, LATEST)]
        earliest, latest = ({target.partition: each.offset for target, each in ends.items()} for ends in found)
        return earliest, latest

    async def _read_some(self, consumer: Consumer) -> None:
        if not self._held:
            count = min(self._port.credit().records, BATCH_RECORDS_MAX)
            self._held = list(await consumer.poll(POLL_MS, count))
            known = consumer.high_watermarks.items()
            self._high_watermarks.update({target.partition: offset for target, offset in known})
        if self._held:
            await self._send_what_credit_allows()
        await self._tell_when_caught_up(consumer)

    async def _send_what_credit_allows(self) -> None:
        credit = self._port.credit()
        count, size_bytes = payable(self._held, credit.records, min(credit.bytes, BATCH_BYTES_MAX))
        if count == 0:
            return  # it was spent while we read
        paid, self._held = self._held[:count], self._held[count:]
        formats = self._request.key_format, self._request.value_format
        batch = [record_json(record, *formats) for record in paid]
        await self._port.records(batch, size_bytes, self._high_watermarks)

    async def _tell_when_caught_up(self, consumer: Consumer) -> None:
        ends = self._high_watermarks
        positions = consumer.positions.items()
        is_behind = bool(self._held) or any(offset < ends.get(target.partition, 0) for target, offset in positions)
        if not is_behind and not self._is_caught_up:
            await self._port.caught_up()
        self._is_caught_up = not is_behind


def start_positions(start: Start, earliest: Mapping[int, int], latest: Mapping[int, int]) -> dict[int, int]:
    """Where to begin in each partition. Raises OffsetOutOfRange for an offset that is not in its log."""
    if isinstance(start, Offsets):
        return {each: _checked(each, start.by_partition.get(each, latest[each]), earliest, latest) for each in latest}
    if isinstance(start, Tail):
        return {partition: max(earliest[partition], latest[partition] - start.count) for partition in latest}
    return dict(earliest if start == "earliest" else latest)


def _checked(partition: int, offset: int, earliest: Mapping[int, int], latest: Mapping[int, int]) -> int:
    first, end = earliest[partition], latest[partition]
    if not first <= offset <= end:
        text = f"offset {offset} is not in partition {partition}, which holds {first} to {end}"
        raise OffsetOutOfRange(text, log_start_offset=first, high_watermark=end)
    return offset


def payable(records: list[Record], records_max: int, bytes_max: int) -> tuple[int, int]:
    """How many of the records fit, and their bytes. The one that crosses the byte limit still goes."""
    count = size_bytes = 0
    for record in records[: max(0, records_max)]:
        if size_bytes >= bytes_max:
            break
        count += 1
        size_bytes += record_size_bytes(record)
    return count, size_bytes
