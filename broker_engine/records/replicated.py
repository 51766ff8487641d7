"""What a follower checks of its leader's bytes before they enter its log: whole batches, CRCs, offsets, epochs.

Nothing is decoded and nothing is changed: offsets and epochs were given by leaders. The bytes may end inside a batch,
and may begin with batches that are in the log already.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

from crc32c import crc32c

from broker_engine.records.compression import CorruptBatch
from broker_engine.records.header import (
    BATCH_LENGTH_MIN,
    CRC_START,
    HEADER_SIZE_BYTES,
    LOG_OVERHEAD_BYTES,
    MAGIC,
    BatchHeader,
    parse_header,
)

_LENGTH_AT_8 = struct.Struct(">8xi")


class Replicated(NamedTuple):
    headers: list[BatchHeader]
    """Of the batches that are news, which lie one behind the other from `start` on."""
    start: int
    is_cut: bool
    """There is more where this came from: the bytes end inside a batch."""


def check_replicated(
    records: memoryview, *, next_offset: int, epoch_min: int, epoch_max: int, is_log_empty: bool = False
) -> Replicated:
    """The batches from `next_offset` on. CorruptBatch if anything about them is not as a leader would send it.

    The first one of an empty log may begin before that: the leader's log may start inside a batch. Of several the last
    is left for the next answer if it begins later than those before it end, or another epoch with it: no CRC covers
    that, only what follows can contradict it, and of the first batch that it sends the leader knows. An epoch above
    `epoch_max`, the present leader's, cannot be in what it sent: such bytes were written over what it meant to send, by
    a truncation on its side.
    """
    headers: list[BatchHeader] = []
    start = position = 0
    end, size_bytes = next_offset, len(records)
    while size_bytes - position >= HEADER_SIZE_BYTES:
        batch_end = position + LOG_OVERHEAD_BYTES + _LENGTH_AT_8.unpack_from(records, position)[0]
        if batch_end > size_bytes:
            break
        header = parse_header(records, position)
        _check_batch(records[position:batch_end], header)
        if not headers and header.last_offset < next_offset:
            start = batch_end
        else:
            if is_log_empty and not headers:
                end = min(end, header.base_offset)
            _check_order(header, end, epoch_min, epoch_max)
            headers.append(header)
            end, epoch_min = header.next_offset, header.partition_leader_epoch
        position = batch_end
    is_left = len(headers) > 1 and not _is_plain_next(*headers[-2:])
    return Replicated(headers[:-1] if is_left else headers, start, is_cut=is_left or position < size_bytes)


def _is_plain_next(before: BatchHeader, header: BatchHeader) -> bool:
    return header.base_offset == before.next_offset and header.partition_leader_epoch == before.partition_leader_epoch


def _check_batch(batch: memoryview, header: BatchHeader) -> None:
    if header.magic != MAGIC or header.batch_length < BATCH_LENGTH_MIN or header.last_offset_delta < 0:
        raise CorruptBatch("what the leader sent is no record batch")
    if crc32c(batch[CRC_START:]) != header.crc:
        raise CorruptBatch(f"the CRC of the leader's batch at offset {header.base_offset} does not match its bytes")


def _check_order(header: BatchHeader, next_offset: int, epoch_min: int, epoch_max: int) -> None:
    if header.base_offset < next_offset:
        raise CorruptBatch(f"the leader's batch begins at {header.base_offset}, our log ends at {next_offset}")
    if not epoch_min <= header.partition_leader_epoch <= epoch_max:
        raise CorruptBatch(
            f"the leader's batch at offset {header.base_offset} is of epoch {header.partition_leader_epoch}, "
            f"not of one from {epoch_min} to {epoch_max}"
        )
