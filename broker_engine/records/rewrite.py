"""A batch with some of its records taken out, as compaction needs it: offsets, sequences and bytes of the rest stay.

Records are cut out of their batch as bytes, not decoded and encoded again, so that whatever a client wrote survives.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from broker_engine.records.compression import CorruptBatch, compress
from broker_engine.records.decode import absolute_timestamp
from broker_engine.records.header import (
    BATCH_LENGTH_MIN,
    CODEC_MASK,
    CONTROL_BIT,
    DELETE_HORIZON_BIT,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    NO_TIMESTAMP,
    TRANSACTIONAL_BIT,
    BatchHeader,
    compute_crc,
    pack_header,
)
from broker_engine.records.varint import read_varint, read_varlong, write_varint


class RecordSlice(NamedTuple):
    """One record as it lies in its payload."""

    start: int
    body: int
    """Behind the length: the attributes byte."""
    after_timestamp: int
    end: int
    timestamp_delta: int
    offset_delta: int
    key: bytes | None
    is_tombstone: bool


def iter_slices(payload: bytes, record_count: int) -> Iterator[RecordSlice]:
    """Exactly `record_count` records that fill the payload exactly; anything else is corrupt. Headers stay unread."""
    position = 0
    try:
        for _ in range(record_count):
            record = _read_slice(payload, position)
            yield record
            position = record.end
    except (IndexError, ValueError) as error:
        raise CorruptBatch(f"a record is malformed at byte {position}") from error
    if position != len(payload):
        raise CorruptBatch(f"{len(payload) - position} bytes are left after {record_count} records")


def _read_slice(payload: bytes, start: int) -> RecordSlice:
    length, body = read_varint(payload, start)
    end = body + length
    if length < 0 or end > len(payload):
        raise ValueError("record length")
    timestamp_delta, after_timestamp = read_varlong(payload, body + 1)
    offset_delta, position = read_varint(payload, after_timestamp)
    key_bytes, position = read_varint(payload, position)
    key = payload[position : position + key_bytes] if key_bytes >= 0 else None
    value_bytes, position = read_varint(payload, position + max(key_bytes, 0))
    if key_bytes < -1 or value_bytes < -1 or position + max(value_bytes, 0) > end:
        raise ValueError("length beyond the record")
    return RecordSlice(start, body, after_timestamp, end, timestamp_delta, offset_delta, key, value_bytes == -1)


def rewrite_batch(
    header: BatchHeader, payload: bytes, kept: Sequence[RecordSlice], *, delete_horizon_ms: int | None
) -> bytes:
    """The batch with only these records. With a delete horizon its base timestamp says when its tombstones may go."""
    timestamps = [absolute_timestamp(header.base_timestamp, record.timestamp_delta) for record in kept]
    if not header.has_log_append_time:
        header = header._replace(max_timestamp=max(timestamps))
    if delete_horizon_ms is None:
        body = b"".join(payload[record.start : record.end] for record in kept)
    else:
        header = header._replace(base_timestamp=delete_horizon_ms, attributes=header.attributes | DELETE_HORIZON_BIT)
        body = b"".join(
            _restamped(payload, record, timestamp - delete_horizon_ms)
            for record, timestamp in zip(kept, timestamps, strict=True)
        )
    return _assemble(header._replace(record_count=len(kept)), bytes(compress(header.codec, body)))


def empty_batch(header: BatchHeader) -> bytes:
    """Nothing but the header: all that keeps a producer's last sequence in the log."""
    attributes = header.attributes & ~CODEC_MASK & ~DELETE_HORIZON_BIT
    return _assemble(header._replace(attributes=attributes, base_timestamp=NO_TIMESTAMP, record_count=0), b"")


def without_producer(header: BatchHeader) -> BatchHeader:
    """As if nobody had sent it, in no transaction."""
    attributes = header.attributes & ~TRANSACTIONAL_BIT & ~CONTROL_BIT
    return header._replace(
        attributes=attributes, producer_id=NO_PRODUCER_ID, producer_epoch=-1, base_sequence=NO_SEQUENCE
    )


def _restamped(payload: bytes, record: RecordSlice, timestamp_delta: int) -> bytes:
    body = bytearray(payload[record.body : record.body + 1])
    write_varint(body, timestamp_delta)
    body += payload[record.after_timestamp : record.end]
    out = bytearray()
    write_varint(out, len(body))
    return bytes(out + body)


def _assemble(header: BatchHeader, payload: bytes) -> bytes:
    header = header._replace(batch_length=BATCH_LENGTH_MIN + len(payload))
    return pack_header(header._replace(crc=compute_crc(header, payload))) + payload
