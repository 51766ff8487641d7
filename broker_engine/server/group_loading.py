"""Reads a partition of `__consumer_offsets` into a shard: this broker leads it now, and its groups live in memory."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from broker_engine.errors import BrokerError, ErrorCode
from broker_engine.groups.shard import GroupShard, UnknownGroupRecord
from broker_engine.log.partition_log import LogRead
from broker_engine.records.batch import decode_records, iter_batches, parse_header
from broker_engine.server.local_partition import LocalPartition

log = logging.getLogger(__name__)

_READ_BYTES = 1 << 20
_BATCH_BYTES_MAX = 64 << 20

Pair = tuple[bytes, bytes | None]


async def load_shard(local: LocalPartition, shard: GroupShard, now_ms: Callable[[], int]) -> int:
    """Everything in the log, also what is not committed yet: this leader's log is what will be. The record count."""
    offset, end_offset, count = local.log_start_offset, local.log.log_end_offset, 0
    while offset < end_offset:
        read = local.read_for_replica(offset, bytes_max=_READ_BYTES, at_least_one=True)
        records, offset = await asyncio.to_thread(_decode, read, offset)
        for key, value in records:
            _replay(shard, key, value, now_ms())
        count += len(records)
    return count


def _replay(shard: GroupShard, key: bytes, value: bytes | None, now_ms: int) -> None:
    try:
        shard.replay(key, value, now_ms)
    except UnknownGroupRecord as error:
        log.info("a record of __consumer_offsets is passed over: %s", error)


def _decode(read: LogRead, offset: int) -> tuple[list[Pair], int]:
    """In a thread: the records of a piece of the log, and where it ends."""
    try:
        data = b"".join(file_range.read() for file_range in read.ranges)
    finally:
        read.release()
    pairs: list[Pair] = []
    start_offset = offset
    for batch in iter_batches(data):
        header = parse_header(batch)
        offset = header.next_offset
        if not header.is_control:
            found = decode_records(batch, max_bytes=_BATCH_BYTES_MAX)
            pairs += [(record.key, record.value) for record in found if record.key is not None]
    if offset <= start_offset:
        raise BrokerError(ErrorCode.KAFKA_STORAGE_ERROR, f"__consumer_offsets cannot be read at {start_offset}")
    return pairs, offset
