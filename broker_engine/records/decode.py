"""Records out of a stored or fetched batch. The batch may be anything: see CorruptBatch and TooLarge."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from broker_engine.records.compression import Codec, CorruptBatch, TooLarge, decompress
from broker_engine.records.header import (
    BATCH_LENGTH_MIN,
    HEADER_SIZE_BYTES,
    MAGIC,
    BatchHeader,
    parse_header,
)
from broker_engine.records.varint import read_varint, read_varlong

Headers = tuple[tuple[str, bytes | None], ...]

_INT64_HALF = 1 << 63
_INT64_END = 1 << 64


class Record(NamedTuple):
    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: Headers = ()


class RawRecord(NamedTuple):
    """A record as it lies in its batch: deltas, not absolute values."""

    timestamp_delta: int
    offset_delta: int
    key: bytes | None
    value: bytes | None
    headers: Headers


def decode_records(batch: bytes | memoryview, *, max_bytes: int) -> list[Record]:
    """Every record of one whole batch. `max_bytes` bounds what decompression may allocate."""
    header = parse_header(batch)
    payload = read_payload(batch, header, max_bytes=max_bytes)
    base_offset = header.base_offset
    if header.has_log_append_time:
        stamp = header.max_timestamp
        return [Record(base_offset + r[1], stamp, r[2], r[3], r[4]) for r in iter_raw(payload, header.record_count)]
    base = header.base_timestamp
    return [
        Record(base_offset + r[1], absolute_timestamp(base, r[0]), r[2], r[3], r[4])
        for r in iter_raw(payload, header.record_count)
    ]


def absolute_timestamp(base_timestamp: int, delta: int) -> int:
    """Their sum, wrapped at 64 bits as every other Kafka program does it."""
    timestamp = base_timestamp + delta
    if -_INT64_HALF <= timestamp < _INT64_HALF:
        return timestamp
    return (timestamp + _INT64_HALF) % _INT64_END - _INT64_HALF


def read_payload(batch: bytes | memoryview, header: BatchHeader, *, max_bytes: int) -> bytes:
    """The records' bytes, decompressed."""
    if header.magic != MAGIC:
        raise CorruptBatch(f"batch format {header.magic} is not supported")
    if header.batch_length < BATCH_LENGTH_MIN or header.size_bytes > len(batch):
        raise CorruptBatch("the batch is cut short, or lies about its length")
    data = memoryview(batch)[HEADER_SIZE_BYTES : header.size_bytes]
    if header.codec == Codec.NONE:
        if len(data) > max_bytes:
            raise TooLarge(max_bytes)
        return bytes(data)
    return decompress(header.codec, data, max_bytes)


def iter_raw(payload: bytes, record_count: int) -> Iterator[RawRecord]:
    """Exactly `record_count` records that fill the payload exactly; anything else is corrupt."""
    position = 0
    try:
        for _ in range(record_count):
            record, position = _read_record(payload, position)
            yield record
    except (IndexError, ValueError) as error:
        raise CorruptBatch(f"a record is malformed at byte {position}") from error
    if position != len(payload):
        raise CorruptBatch(f"{len(payload) - position} bytes are left after {record_count} records")


def _read_record(payload: bytes, position: int) -> tuple[RawRecord, int]:
    length, position = read_varint(payload, position)
    end = position + length
    if length < 0 or end > len(payload):
        raise ValueError("record length")
    position += 1  # record attributes: unused, and Kafka stores any
    timestamp_delta, position = read_varlong(payload, position)
    offset_delta, position = read_varint(payload, position)
    key, position = _read_nullable(payload, position, end)
    value, position = _read_nullable(payload, position, end)
    headers: Headers = ()
    if payload[position]:
        headers, position = _read_headers(payload, position, end)
    else:
        position += 1
    if position != end:
        raise ValueError("record length")
    return RawRecord(timestamp_delta, offset_delta, key, value, headers), end


def _read_nullable(payload: bytes, position: int, end: int) -> tuple[bytes | None, int]:
    size, position = read_varint(payload, position)
    if size < 0:
        if size != -1:
            raise ValueError("negative length")
        return None, position
    stop = position + size
    if stop > end:
        raise ValueError("length beyond the record")
    return payload[position:stop], stop


def _read_headers(payload: bytes, position: int, end: int) -> tuple[Headers, int]:
    count, position = read_varint(payload, position)
    # Each header takes at least two bytes, so a lie about their number cannot make us loop long.
    if count < 0 or count > (end - position) // 2:
        raise ValueError("header count")
    headers = []
    for _ in range(count):
        name, position = _read_nullable(payload, position, end)
        if name is None:
            raise ValueError("header key is null")
        value, position = _read_nullable(payload, position, end)
        headers.append((name.decode("utf-8", "replace"), value))
    return tuple(headers), position
