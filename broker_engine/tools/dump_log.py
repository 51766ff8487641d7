"""`dump-log FILE...`: what is in a segment, an index or a snapshot, one line per entry.

Files are hostile: what does not decode is said to be so, and the printing goes on behind it where there is a way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import fields, is_dataclass
from pathlib import Path

from broker_engine.log.damage import find_next_batch
from broker_engine.log.file_seam import Readable
from broker_engine.log.index import OFFSET_ENTRY, TIME_ENTRY
from broker_engine.log.scan import ScannedBatch, scan_batches
from broker_engine.log.segment import INDEX_SUFFIX, LOG_SUFFIX, SNAPSHOT_SUFFIX, TIME_INDEX_SUFFIX, TXN_INDEX_SUFFIX
from broker_engine.log.txn_index import parse_entries
from broker_engine.metadata.records import UnknownRecordError, decode_record
from broker_engine.names import CLUSTER_METADATA, CONSUMER_OFFSETS
from broker_engine.partition.producer_snapshot import parse_snapshot
from broker_engine.records.batch import BatchHeader, Codec, CorruptBatch, Record, TooLarge, decode_records, verify_crc
from broker_engine.records.control import read_marker
from broker_engine.tools.coordinator_records import describe_key, describe_value
from broker_engine.tools.read_only_file import ReadOnlyFile

_DECOMPRESSED_BYTES_MAX = 100 << 20
_SHOWN_BYTES_MAX = 200


def dump(path: Path) -> Iterator[str]:
    """Lines about one file. OSError where it cannot be read, ValueError where its name says nothing that we know."""
    printer = _PRINTERS.get(path.suffix)
    if printer is None:
        raise ValueError(f"{path.name}: known are {', '.join(_PRINTERS)}")
    return printer(path)


def _dump_log(path: Path) -> Iterator[str]:
    describe = _describer(path)
    handle = ReadOnlyFile(path)
    position = 0
    while position < handle.size_bytes:
        for batch in scan_batches(handle, position):
            yield from _dump_batch(handle, batch, describe)
            position = batch.end_position
        if position == handle.size_bytes:
            break
        following = find_next_batch(handle, position, 0)
        end = handle.size_bytes if following is None else following.position
        yield f"DAMAGED: no batch from byte {position} to {end}"
        position = end
    handle.close()


def _dump_batch(handle: Readable, batch: ScannedBatch, describe: Callable[[Record], str]) -> Iterator[str]:
    data, header = handle.pread(batch.header.size_bytes, batch.position), batch.header
    yield _batch_line(batch.position, header, is_valid=verify_crc(data, header))
    if header.is_control and (marker := read_marker(data)):
        outcome = "COMMIT" if marker.is_commit else "ABORT"
        yield f"| offset {header.base_offset} marker {outcome} coordinator epoch {marker.coordinator_epoch}"
        return
    describe = _describe_plain if header.is_control else describe
    try:
        for record in decode_records(data, max_bytes=_DECOMPRESSED_BYTES_MAX):
            yield f"| offset {record.offset} time {record.timestamp} {describe(record)}"
    except (CorruptBatch, TooLarge) as error:
        yield f"| cannot be decoded: {error.message}"


def _batch_line(position: int, header: BatchHeader, *, is_valid: bool) -> str:
    words = [
        f"offsets {header.base_offset}-{header.last_offset} records {header.record_count}",
        f"at {position} bytes {header.size_bytes} epoch {header.partition_leader_epoch} time {header.max_timestamp}",
        Codec(header.codec).name.lower() if header.codec in list(Codec) else f"codec {header.codec}",
    ]
    if header.has_producer_id:
        words.append(f"producer {header.producer_id}/{header.producer_epoch} from sequence {header.base_sequence}")
    flags = {
        "transactional": header.is_transactional,
        "control": header.is_control,
        "log append time": header.has_log_append_time,
        f"delete horizon {header.base_timestamp}": header.has_delete_horizon,
        "CRC WRONG": not is_valid,
    }
    return ", ".join([*words, *(name for name, is_set in flags.items() if is_set)])


def _describer(path: Path) -> Callable[[Record], str]:
    topic = path.resolve().parent.name.rpartition("-")[0]
    return {CLUSTER_METADATA: _describe_metadata, CONSUMER_OFFSETS: _describe_coordinator}.get(topic, _describe_plain)


def _describe_plain(record: Record) -> str:
    headers = "".join(f" {name}={_shown(value)}" for name, value in record.headers)
    return f"key {_shown(record.key)} value {_shown(record.value)}{headers}"


def _describe_coordinator(record: Record) -> str:
    key = record.key or b""
    try:
        return f"{describe_key(key)}: {describe_value(key, record.value)}"
    except ValueError as error:
        return f"{error}: {_describe_plain(record)}"


def _describe_metadata(record: Record) -> str:
    try:
        return _in_words(decode_record(record.value or b""))
    except UnknownRecordError as error:
        return f"{error}: {_describe_plain(record)}"


def _in_words(value: object) -> str:
    """Bytes by their number only: some are credentials."""
    if isinstance(value, bytes | bytearray | memoryview):
        return f"<{len(value)} bytes>"
    if isinstance(value, list | tuple):
        return f"[{', '.join(_in_words(each) for each in value)}]"
    if is_dataclass(value):
        words = ", ".join(f"{field.name}={_in_words(getattr(value, field.name))}" for field in fields(value))
        return f"{type(value).__name__}({words})"
    return repr(value)


def _shown(data: bytes | None) -> str:
    if data is None:
        return "null"
    more = f"... {len(data)} bytes" if len(data) > _SHOWN_BYTES_MAX else ""
    return repr(data[:_SHOWN_BYTES_MAX].decode("utf-8", "backslashreplace")) + more


def _dump_index(path: Path) -> Iterator[str]:
    base_offset = int(path.stem)
    for relative_offset, position in _entries(path, OFFSET_ENTRY.iter_unpack, OFFSET_ENTRY.size):
        yield f"offset {base_offset + relative_offset} at {position}"


def _dump_time_index(path: Path) -> Iterator[str]:
    base_offset = int(path.stem)
    for timestamp, relative_offset in _entries(path, TIME_ENTRY.iter_unpack, TIME_ENTRY.size):
        yield f"time {timestamp} up to offset {base_offset + relative_offset}"


def _entries(
    path: Path, unpack: Callable[[bytes], Iterable[tuple[int, ...]]], size_bytes: int
) -> Iterable[tuple[int, ...]]:
    data = path.read_bytes()
    return unpack(data[: len(data) // size_bytes * size_bytes])


def _dump_txn_index(path: Path) -> Iterator[str]:
    entries = parse_entries(path.read_bytes())
    if entries is None:
        yield "DAMAGED: not a transaction index"
    for entry in entries or []:
        yield (
            f"producer {entry.producer_id} aborted {entry.first_offset}-{entry.last_offset}"
            f" last stable offset {entry.last_stable_offset}"
        )


def _dump_snapshot(path: Path) -> Iterator[str]:
    entries = parse_snapshot(path.read_bytes())
    if entries is None:
        yield "DAMAGED: not a producer snapshot"
    for entry in entries or []:
        yield (
            f"producer {entry.producer_id}/{entry.producer_epoch} last sequence {entry.last_sequence}"
            f" at offset {entry.last_offset} time {entry.timestamp} coordinator epoch {entry.coordinator_epoch}"
            f" transaction from {entry.txn_first_offset}"
        )


_PRINTERS: dict[str, Callable[[Path], Iterator[str]]] = {
    LOG_SUFFIX: _dump_log,
    INDEX_SUFFIX: _dump_index,
    TIME_INDEX_SUFFIX: _dump_time_index,
    TXN_INDEX_SUFFIX: _dump_txn_index,
    SNAPSHOT_SUFFIX: _dump_snapshot,
}
