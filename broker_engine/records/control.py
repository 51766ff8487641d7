"""Transaction markers: the one record of a control batch that says how a producer's transaction ended."""

from __future__ import annotations

import struct
from typing import NamedTuple

from broker_engine.records.compression import CorruptBatch, TooLarge
from broker_engine.records.decode import decode_records

ABORT, COMMIT = 0, 1
_KEY = struct.Struct(">hh")
_VALUE = struct.Struct(">hi")
_MARKER_BYTES_MAX = 64 * 1024


class TxnMarker(NamedTuple):
    is_commit: bool
    coordinator_epoch: int


def read_marker(batch: bytes | memoryview) -> TxnMarker | None:
    """The marker in a control batch. None where there is none: another control type, cleaned away, or not readable."""
    try:
        records = decode_records(batch, max_bytes=_MARKER_BYTES_MAX)
        _, kind = _KEY.unpack_from(records[0].key or b"")
        _, coordinator_epoch = _VALUE.unpack_from(records[0].value or b"")
    except (CorruptBatch, TooLarge, IndexError, struct.error):
        return None
    return TxnMarker(kind == COMMIT, coordinator_epoch) if kind in (ABORT, COMMIT) else None


def marker_record(marker: TxnMarker) -> tuple[bytes, bytes]:
    """Key and value of the record that `read_marker` reads."""
    return _KEY.pack(0, COMMIT if marker.is_commit else ABORT), _VALUE.pack(0, marker.coordinator_epoch)
