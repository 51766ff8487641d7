"""Records into a batch: `build_batch` for a list, `BatchBuilder` for a producer that collects them one by one."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import NamedTuple

from broker_engine.records.compression import Codec, compress
from broker_engine.records.header import (
    BATCH_LENGTH_MIN,
    CONTROL_BIT,
    HEADER_SIZE_BYTES,
    LOG_APPEND_TIME_BIT,
    MAGIC,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    NO_TIMESTAMP,
    TRANSACTIONAL_BIT,
    BatchHeader,
    compute_crc,
    pack_header,
    parse_header,
)
from broker_engine.records.varint import write_varint

_CONTROL_KEY = struct.Struct(">hh")


class NewRecord(NamedTuple):
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: Sequence[tuple[str, bytes | None]] = ()


class BatchBuilder:
    """Collects records until they would exceed `size_bytes_max` (uncompressed), then `close` gives the batch.

    The first record always fits: what is too large for the topic, the broker says.
    """

    def __init__(self, *, codec: int = Codec.NONE, size_bytes_max: int = (1 << 31) - 1) -> None:
        self._codec = codec
        self._size_bytes_max = size_bytes_max
        self._payload = bytearray()
        self._base_timestamp = self._max_timestamp = NO_TIMESTAMP
        self.count = 0

    @property
    def size_bytes(self) -> int:
        """Of the batch as collected so far, before compression."""
        return HEADER_SIZE_BYTES + len(self._payload)

    def append(self, record: NewRecord) -> bool:
        """False, and nothing changed, if the record does not fit any more."""
        timestamp = record.timestamp_ms
        base = timestamp if self.count == 0 else self._base_timestamp
        encoded = encode_record(record, timestamp_delta=timestamp - base, offset_delta=self.count)
        if self.count and self.size_bytes + len(encoded) > self._size_bytes_max:
            return False
        self._max_timestamp = timestamp if self.count == 0 else max(self._max_timestamp, timestamp)
        self._base_timestamp = base
        self._payload += encoded
        self.count += 1
        return True

    def close(
        self,
        *,
        base_offset: int = 0,
        leader_epoch: int = -1,
        producer_id: int = NO_PRODUCER_ID,
        producer_epoch: int = -1,
        base_sequence: int = NO_SEQUENCE,
        is_transactional: bool = False,
        is_control: bool = False,
    ) -> bytes:
        payload = compress(self._codec, self._payload)
        header = BatchHeader(
            base_offset=base_offset,
            batch_length=BATCH_LENGTH_MIN + len(payload),
            partition_leader_epoch=leader_epoch,
            magic=MAGIC,
            crc=0,
            attributes=self._codec | is_transactional * TRANSACTIONAL_BIT | is_control * CONTROL_BIT,
            last_offset_delta=self.count - 1,
            base_timestamp=self._base_timestamp,
            max_timestamp=self._max_timestamp,
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            base_sequence=base_sequence,
            record_count=self.count,
        )
        return pack_header(header._replace(crc=compute_crc(header, payload))) + payload


def build_batch(
    records: Sequence[NewRecord],
    *,
    codec: int = Codec.NONE,
    base_offset: int = 0,
    leader_epoch: int = -1,
    producer_id: int = NO_PRODUCER_ID,
    producer_epoch: int = -1,
    base_sequence: int = NO_SEQUENCE,
    is_transactional: bool = False,
    is_control: bool = False,
) -> bytes:
    builder = BatchBuilder(codec=codec)
    for record in records:
        builder.append(record)
    return builder.close(
        base_offset=base_offset,
        leader_epoch=leader_epoch,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=base_sequence,
        is_transactional=is_transactional,
        is_control=is_control,
    )


def restamp(batch: bytes | memoryview, *, producer_id: int, producer_epoch: int, base_sequence: int) -> bytes:
    """The same records under another producer identity: what a client resends after its epoch was raised."""
    header = parse_header(batch)._replace(
        producer_id=producer_id, producer_epoch=producer_epoch, base_sequence=base_sequence
    )
    payload = memoryview(batch)[HEADER_SIZE_BYTES : header.size_bytes]
    return pack_header(header._replace(crc=compute_crc(header, payload))) + bytes(payload)


def stamp_append_time(header: BatchHeader, payload: memoryview, now_ms: int) -> BatchHeader:
    """LogAppendTime: bit 3 and maxTimestamp; baseTimestamp stays as sent."""
    header = header._replace(max_timestamp=now_ms, attributes=header.attributes | LOG_APPEND_TIME_BIT)
    return header._replace(crc=compute_crc(header, payload))


def control_key(control_type: int) -> bytes:
    """The key of a control record: version 0 and the type (0 abort, 1 commit, 2 leader change)."""
    return _CONTROL_KEY.pack(0, control_type)


def encode_record(record: NewRecord, *, timestamp_delta: int, offset_delta: int) -> bytes:
    body = bytearray(1)  # attributes: none are in use
    write_varint(body, timestamp_delta)
    write_varint(body, offset_delta)
    _write_nullable(body, record.key)
    _write_nullable(body, record.value)
    write_varint(body, len(record.headers))
    for name, value in record.headers:
        _write_nullable(body, name.encode())
        _write_nullable(body, value)
    encoded = bytearray()
    write_varint(encoded, len(body))
    return bytes(encoded + body)


def _write_nullable(out: bytearray, value: bytes | None) -> None:
    if value is None:
        out.append(1)  # zigzag of -1
    else:
        write_varint(out, len(value))
        out += value
