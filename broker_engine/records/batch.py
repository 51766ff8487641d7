"""The public face of this package: what the log, the handlers and the client import."""

from __future__ import annotations

from broker_engine.records.check import ProduceLimits, check_produced
from broker_engine.records.compression import Codec, CorruptBatch, TooLarge
from broker_engine.records.decode import Record, decode_records
from broker_engine.records.header import (
    HEADER_SIZE_BYTES,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    NO_TIMESTAMP,
    BatchHeader,
    compute_crc,
    iter_batches,
    pack_header,
    parse_header,
    verify_crc,
)

__all__ = [
    "HEADER_SIZE_BYTES",
    "NO_PRODUCER_ID",
    "NO_SEQUENCE",
    "NO_TIMESTAMP",
    "BatchHeader",
    "Codec",
    "CorruptBatch",
    "ProduceLimits",
    "Record",
    "TooLarge",
    "check_produced",
    "compute_crc",
    "decode_records",
    "iter_batches",
    "pack_header",
    "parse_header",
    "verify_crc",
]
