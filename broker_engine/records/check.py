"""What a produced batch must satisfy before it enters a log (contracts 7; error codes by Kafka 4.3.1's own answers).

Two depths. `header` (the default) looks at the 61 bytes, the sizes and the CRC. Where a topic needs more (compacted,
LogAppendTime, stored in another codec, record.validation=full) every record is walked as well. In `header` depth a
batch whose header is sound and whose records are not is accepted, so every reader of ours treats stored batches as
hostile.

Not decided here: the transactional bit without a transactional id (53, the Produce handler, for the whole request), and
the producer's sequence (partition core).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from crc32c import crc32c

from broker_engine.errors import BrokerError, ErrorCode
from broker_engine.records.compression import Codec, CorruptBatch, StoredCompression
from broker_engine.records.decode import absolute_timestamp, iter_raw, read_payload
from broker_engine.records.header import (
    BATCH_LENGTH_MIN,
    CODEC_MASK,
    CRC_START,
    HEADER_SIZE_BYTES,
    LOG_APPEND_TIME_BIT,
    LOG_OVERHEAD_BYTES,
    MAGIC,
    NO_TIMESTAMP,
    TRANSACTIONAL_BIT,
    BatchHeader,
    compute_crc,
    parse_header,
    verify_crc,
)

_MAGIC_POSITION = 16
_LEGACY_LENGTH_MIN = 14
"""The smallest message of any format: below it the length itself is senseless."""
_RECORD_BYTES_MIN = 7
_ZSTD_PRODUCE_VERSION_MIN = 7


@dataclass(frozen=True, slots=True, kw_only=True)
class ProduceLimits:
    """What one topic asks of a batch, out of its configuration."""

    max_message_bytes: int = 1_048_588
    validate_records: bool = False
    """record.validation=full"""
    is_compacted: bool = False
    uses_log_append_time: bool = False
    timestamp_before_ms_max: int = (1 << 63) - 1
    timestamp_after_ms_max: int = 3_600_000
    decompressed_bytes_max: int = 100 << 20
    stored_as: StoredCompression | None = None
    """compression.type; None keeps what the producer chose."""

    @property
    def needs_walk(self) -> bool:
        return self.validate_records or self.is_compacted or self.uses_log_append_time

    def recompresses(self, header: BatchHeader) -> bool:
        return self.stored_as is not None and self.stored_as.codec != header.codec


def check_produced(records: memoryview, *, produce_version: int, limits: ProduceLimits, now_ms: int) -> BatchHeader:
    """The header of the one batch in `records`, put right where Kafka puts it right; BrokerError says what is wrong.

    The header's `size_bytes` says where the batch ends: bytes after it are not part of it. Its attributes, maxTimestamp
    and CRC are those to store, so the log packs it again instead of copying the producer's.
    """
    plain = plain_headers((records,), produce_version=produce_version, limits=limits, now_ms=now_ms)
    if plain:
        return plain[0]
    return check_one_by_one(records, produce_version=produce_version, limits=limits, now_ms=now_ms)


def check_one_by_one(records: memoryview, *, produce_version: int, limits: ProduceLimits, now_ms: int) -> BatchHeader:
    """As `check_produced`, in the order in which Kafka finds things wrong."""
    header = _only_batch(records)
    if header.codec == Codec.ZSTD and produce_version < _ZSTD_PRODUCE_VERSION_MIN:
        raise BrokerError(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, "zstd needs Produce version 7 or later")
    if header.base_offset != 0:
        raise _invalid(f"the base offset is {header.base_offset}, not 0")
    if header.size_bytes > limits.max_message_bytes:
        raise BrokerError(
            ErrorCode.MESSAGE_TOO_LARGE,
            f"the batch has {header.size_bytes} bytes; max.message.bytes allows {limits.max_message_bytes}",
        )
    if not verify_crc(records, header):
        raise CorruptBatch("the batch's CRC does not match its bytes")
    _check_header_values(header)
    if limits.needs_walk or limits.recompresses(header):
        max_timestamp = _check_each_record(records, header, limits, now_ms)
    else:
        _check_header_timestamps(header, limits, now_ms)
        max_timestamp = header.max_timestamp
    if limits.uses_log_append_time:
        return header  # the log stamps it when it appends
    return _put_right(header, records, max_timestamp)


def plain_headers(
    batches: Iterable[memoryview], *, produce_version: int, limits: ProduceLimits, now_ms: int
) -> list[BatchHeader]:
    """The headers of batches that have nothing to put right, found by comparisons alone, up to the first that is
    different: nearly every batch is one, and each is looked at here. The checks one by one say what is the matter with
    that one, or that nothing is.
    """
    headers: list[BatchHeader] = []
    if limits.needs_walk or limits.stored_as or produce_version < _ZSTD_PRODUCE_VERSION_MIN:
        return headers
    earliest_ms, latest_ms = now_ms - limits.timestamp_before_ms_max, now_ms + limits.timestamp_after_ms_max
    size_bytes_max = limits.max_message_bytes
    for records in batches:
        size_bytes = len(records)
        if size_bytes < HEADER_SIZE_BYTES or size_bytes > size_bytes_max:
            break
        header = parse_header(records)
        base, length, _, magic, crc, attributes, last_delta, first_ms, last_ms, producer_id, _, sequence, count = header
        if not (
            length == size_bytes - LOG_OVERHEAD_BYTES
            and base == 0
            and magic == MAGIC
            and 0 <= attributes & ~TRANSACTIONAL_BIT <= Codec.ZSTD
            and 0 < count == last_delta + 1
            and count * _RECORD_BYTES_MIN <= length - BATCH_LENGTH_MIN
            and earliest_ms <= first_ms <= latest_ms
            and earliest_ms <= last_ms <= latest_ms
            and (sequence >= 0 or producer_id < 0)
            and crc32c(records[CRC_START:]) == crc
        ):
            break
        headers.append(header)
    return headers


def _only_batch(records: memoryview) -> BatchHeader:
    """The first batch's header; the order of refusals is Kafka's."""
    size_bytes = _whole_batch_bytes(records, 0)
    if size_bytes is None:
        raise _invalid("there is no whole record batch")
    magic = records[_MAGIC_POSITION]
    if magic != MAGIC:
        raise _invalid(f"record format {magic} is not supported: Produce v3 and later need format 2")
    if size_bytes < HEADER_SIZE_BYTES:
        raise CorruptBatch("the batch length is below the least possible")
    if len(records) != size_bytes and _whole_batch_bytes(records, size_bytes) is not None:
        raise _invalid("there is more than one record batch")
    return parse_header(records)


def _whole_batch_bytes(records: memoryview, position: int) -> int | None:
    """The size of the batch or old message at `position`; None if it is not all there."""
    left_bytes = len(records) - position
    if left_bytes < LOG_OVERHEAD_BYTES:
        return None
    length = int.from_bytes(records[position + 8 : position + 12], "big", signed=True)
    if length < _LEGACY_LENGTH_MIN:
        raise CorruptBatch(f"batch length {length} is below the least possible")
    if left_bytes <= _MAGIC_POSITION:
        return None
    if records[position + _MAGIC_POSITION] > MAGIC:
        raise CorruptBatch(f"record format {records[position + _MAGIC_POSITION]} is unknown")
    return length + LOG_OVERHEAD_BYTES if length + LOG_OVERHEAD_BYTES <= left_bytes else None


def _check_header_values(header: BatchHeader) -> None:
    count = header.record_count
    if count <= 0 or header.last_offset_delta != count - 1:
        raise _invalid(f"{count} records with last offset delta {header.last_offset_delta}")
    if header.attributes & CODEC_MASK > Codec.ZSTD:
        raise _invalid(f"unknown compression codec {header.codec}")
    if header.is_control:
        raise _invalid("clients may not write control batches")
    if header.has_producer_id and header.base_sequence < 0:
        raise _invalid(f"sequence {header.base_sequence} with a producer id")
    payload_bytes = header.batch_length - BATCH_LENGTH_MIN
    if header.codec == Codec.NONE and count * _RECORD_BYTES_MIN > payload_bytes:
        raise _invalid(f"{count} records cannot be in {payload_bytes} bytes")


def _check_header_timestamps(header: BatchHeader, limits: ProduceLimits, now_ms: int) -> None:
    first, last = header.base_timestamp, header.max_timestamp
    problem = _timestamp_problem(first, limits, now_ms) or _timestamp_problem(last, limits, now_ms)
    if problem:
        # Which record it is, the header tells only where there is one.
        errors = ((0, problem),) if header.record_count == 1 else ()
        raise BrokerError(ErrorCode.INVALID_TIMESTAMP, problem, record_errors=errors)


def _timestamp_problem(timestamp: int, limits: ProduceLimits, now_ms: int) -> str:
    if timestamp == NO_TIMESTAMP:
        return ""
    if timestamp - now_ms > limits.timestamp_after_ms_max:
        return f"timestamp {timestamp} is more than {limits.timestamp_after_ms_max} ms ahead of the broker's clock"
    if now_ms - timestamp > limits.timestamp_before_ms_max:
        return f"timestamp {timestamp} is more than {limits.timestamp_before_ms_max} ms behind the broker's clock"
    return ""


def _check_each_record(records: memoryview, header: BatchHeader, limits: ProduceLimits, now_ms: int) -> int:
    """Walk all records; the highest timestamp among them."""
    max_timestamp = NO_TIMESTAMP
    keyless: list[tuple[int, str]] = []
    misdated: list[tuple[int, str]] = []
    # Kafka looks at the deltas only where a batch is compressed, or is to be.
    checks_deltas = header.codec != Codec.NONE or limits.recompresses(header)
    try:
        payload = read_payload(records, header, max_bytes=limits.decompressed_bytes_max)
        for index, record in enumerate(iter_raw(payload, header.record_count)):
            if checks_deltas and record.offset_delta != index:
                raise _invalid(f"record {index} has offset delta {record.offset_delta}")
            if limits.is_compacted and record.key is None:
                keyless.append((index, "a compacted topic takes no record without a key"))
            timestamp = absolute_timestamp(header.base_timestamp, record.timestamp_delta)
            max_timestamp = timestamp if index == 0 else max(max_timestamp, timestamp)
            if not limits.uses_log_append_time and (problem := _timestamp_problem(timestamp, limits, now_ms)):
                misdated.append((index, problem))
    except CorruptBatch as error:
        raise _invalid(error.message) from error
    if keyless:
        raise BrokerError(ErrorCode.INVALID_RECORD, keyless[0][1], record_errors=keyless)
    if misdated:
        raise BrokerError(ErrorCode.INVALID_TIMESTAMP, misdated[0][1], record_errors=misdated)
    return max_timestamp


def _put_right(header: BatchHeader, records: memoryview, max_timestamp: int) -> BatchHeader:
    """Clear a timestamp-type bit that the client set, correct maxTimestamp; a new CRC only if either was wrong."""
    if header.max_timestamp == max_timestamp and not header.attributes & LOG_APPEND_TIME_BIT:
        return header
    header = header._replace(max_timestamp=max_timestamp, attributes=header.attributes & ~LOG_APPEND_TIME_BIT)
    return header._replace(crc=compute_crc(header, records[HEADER_SIZE_BYTES : header.size_bytes]))


def _invalid(message: str) -> BrokerError:
    return BrokerError(ErrorCode.INVALID_RECORD, message)
