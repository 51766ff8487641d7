"""Transaction markers, the control batches that end a producer's transaction; what follows from them for a log."""

from __future__ import annotations

import struct
from collections.abc import Iterable
from typing import NamedTuple

from broker_engine.records.builder import NewRecord, build_batch
from broker_engine.records.compression import CorruptBatch, TooLarge
from broker_engine.records.decode import decode_records
from broker_engine.records.header import BatchHeader, verify_crc

ABORT, COMMIT = 0, 1
_KEY = struct.Struct(">hh")
_VALUE = struct.Struct(">hi")
_MARKER_BYTES_MAX = 64 * 1024


class TxnMarker(NamedTuple):
    is_commit: bool
    coordinator_epoch: int


def read_marker(batch: bytes | memoryview, *, verify: bool = False) -> TxnMarker | None:
    """The marker in a control batch. None where there is none: another control type, cleaned away, or not readable;
    with `verify` also where the batch is not what was written.
    """
    if verify and not verify_crc(batch):
        return None
    try:
        records = decode_records(batch, max_bytes=_MARKER_BYTES_MAX)
        _, kind = _KEY.unpack_from(records[0].key or b"")
        _, coordinator_epoch = _VALUE.unpack_from(records[0].value or b"")
    except (CorruptBatch, TooLarge, IndexError, struct.error):
        return None
    return TxnMarker(kind == COMMIT, coordinator_epoch) if kind in (ABORT, COMMIT) else None


def is_unreadable(header: BatchHeader, marker: TxnMarker | None) -> bool:
    """Is there a marker in the batch, and it could not be read? Of one that was cleaned away no record is left."""
    return marker is None and header.is_control and header.is_transactional and header.record_count > 0


def marker_record(marker: TxnMarker) -> tuple[bytes, bytes]:
    """Key and value of the record that `read_marker` reads."""
    return _KEY.pack(0, COMMIT if marker.is_commit else ABORT), _VALUE.pack(0, marker.coordinator_epoch)


def marker_batch(producer_id: int, producer_epoch: int, marker: TxnMarker, now_ms: int) -> bytes:
    """The control batch that ends the producer's transaction."""
    return build_batch(
        [NewRecord(now_ms, *marker_record(marker))],
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        is_transactional=True,
        is_control=True,
    )


class LastBatch(NamedTuple):
    """Of a producer that is still known: the batch with its last sequence must stay, were it empty."""

    producer_epoch: int
    last_offset: int
    """Of the last one that nothing takes away any more: those behind it stay as well. -1: of this epoch there is only a
    marker."""


class EndedTransaction(NamedTuple):
    producer_id: int
    first_offset: int
    last_offset: int
    """Of its marker."""
    last_stable_offset: int
    """After it: where the oldest transaction that is still open began, else behind the marker."""
    is_aborted: bool


class OpenTransactions:
    """Where each producer's open transaction began; a log's batches are shown to it in order."""

    def __init__(self, first_offsets: Iterable[tuple[int, int]] = ()) -> None:
        """`first_offsets`: (offset, producer id) of what is open already."""
        self._first_offsets = {producer_id: offset for offset, producer_id in sorted(first_offsets)}

    def __bool__(self) -> bool:
        return bool(self._first_offsets)

    @property
    def first_offset(self) -> int | None:
        """Where the oldest one began."""
        return next(iter(self._first_offsets.values()), None)

    def first_offset_of(self, producer_id: int) -> int | None:
        return self._first_offsets.get(producer_id)

    def observe(self, header: BatchHeader, base_offset: int, marker: TxnMarker | None) -> EndedTransaction | None:
        """The transaction that this transactional batch ended, if it is a marker and one was open."""
        if not header.is_control:
            self._first_offsets.setdefault(header.producer_id, base_offset)
            return None
        first_offset = self._first_offsets.pop(header.producer_id, None) if marker is not None else None
        if marker is None or first_offset is None:
            return None
        oldest = self.first_offset
        stable = base_offset + 1 if oldest is None else oldest
        return EndedTransaction(header.producer_id, first_offset, base_offset, stable, is_aborted=not marker.is_commit)
