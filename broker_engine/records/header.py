"""The 61 bytes in front of every record batch: parse, pack, CRC-32C, and walking from batch to batch."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import NamedTuple

from crc32c import crc32c

from broker_engine.records.compression import CorruptBatch

HEADER_SIZE_BYTES = 61
LOG_OVERHEAD_BYTES = 12
"""baseOffset and batchLength: what batchLength does not count."""
BATCH_LENGTH_MIN = HEADER_SIZE_BYTES - LOG_OVERHEAD_BYTES
CRC_START = 21
MAGIC = 2

NO_PRODUCER_ID = -1
NO_SEQUENCE = -1
NO_TIMESTAMP = -1
SEQUENCE_END = 1 << 31
"""Sequences wrap from 2^31-1 to 0."""

ATTRIBUTES_LOW_BYTE = 22
"""Where a batch has the bits below."""
CODEC_MASK = 0x07
LOG_APPEND_TIME_BIT = 0x08
TRANSACTIONAL_BIT = 0x10
CONTROL_BIT = 0x20
DELETE_HORIZON_BIT = 0x40

_HEADER = struct.Struct(">qiibIhiqqqhii")
_LENGTH_AT_8 = struct.Struct(">8xi")
_FRONT = struct.Struct(">qii")
FRONT_SIZE_BYTES = _FRONT.size
"""Base offset, length and leader epoch: what a log gives a batch, and its CRC does not cover."""
assert _HEADER.size == HEADER_SIZE_BYTES


class BatchHeader(NamedTuple):
    """One batch header. A NamedTuple, not a dataclass: made once per produced batch, and six times faster to make."""

    base_offset: int
    batch_length: int
    partition_leader_epoch: int
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    record_count: int

    @property
    def size_bytes(self) -> int:
        """Of the whole batch, header included."""
        return self.batch_length + LOG_OVERHEAD_BYTES

    @property
    def last_offset(self) -> int:
        return self.base_offset + self.last_offset_delta

    @property
    def next_offset(self) -> int:
        return self.base_offset + self.last_offset_delta + 1

    @property
    def codec(self) -> int:
        return self.attributes & CODEC_MASK

    @property
    def has_log_append_time(self) -> bool:
        return bool(self.attributes & LOG_APPEND_TIME_BIT)

    @property
    def is_transactional(self) -> bool:
        return bool(self.attributes & TRANSACTIONAL_BIT)

    @property
    def is_control(self) -> bool:
        return bool(self.attributes & CONTROL_BIT)

    @property
    def has_delete_horizon(self) -> bool:
        """Set by compaction: baseTimestamp then says when its tombstones may go."""
        return bool(self.attributes & DELETE_HORIZON_BIT)

    @property
    def has_producer_id(self) -> bool:
        return self.producer_id > NO_PRODUCER_ID

    @property
    def last_sequence(self) -> int:
        if self.base_sequence == NO_SEQUENCE:
            return NO_SEQUENCE
        return (self.base_sequence + self.last_offset_delta) % SEQUENCE_END


def parse_header(buffer: bytes | bytearray | memoryview, position: int = 0) -> BatchHeader:
    """The header at `position`. Only its presence is checked, none of its values."""
    try:
        return BatchHeader._make(_HEADER.unpack_from(buffer, position))
    except struct.error as error:
        raise CorruptBatch("fewer bytes than a batch header has") from error


def pack_header(header: BatchHeader) -> bytes:
    return _HEADER.pack(*header)


def pack_front(base_offset: int, batch_length: int, leader_epoch: int) -> bytes:
    return _FRONT.pack(base_offset, batch_length, leader_epoch)


def compute_crc(header: BatchHeader, payload: bytes | memoryview) -> int:
    """The CRC that belongs to this header in front of this payload."""
    return int(crc32c(payload, crc32c(_HEADER.pack(*header)[CRC_START:])))


def verify_crc(batch: bytes | memoryview, header: BatchHeader | None = None) -> bool:
    """True if `batch` holds one whole batch (more bytes may follow) whose CRC-32C agrees."""
    header = header or parse_header(batch)
    if not BATCH_LENGTH_MIN <= header.batch_length <= len(batch) - LOG_OVERHEAD_BYTES:
        return False
    return bool(crc32c(memoryview(batch)[CRC_START : header.size_bytes]) == header.crc)


def iter_batches(buffer: bytes | memoryview) -> Iterator[memoryview]:
    """Each whole batch in turn. Stops at a cut-off tail, which fetches may have; CorruptBatch at a senseless length."""
    view = memoryview(buffer)
    position = 0
    while len(view) - position >= HEADER_SIZE_BYTES:
        (batch_length,) = _LENGTH_AT_8.unpack_from(view, position)
        if batch_length < BATCH_LENGTH_MIN:
            raise CorruptBatch(f"batch length {batch_length} is below the least possible")
        end = position + LOG_OVERHEAD_BYTES + batch_length
        if end > len(view):
            return
        yield view[position:end]
        position = end
