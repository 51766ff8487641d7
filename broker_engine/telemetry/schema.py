"""The keys and values of `__telemetry`, declared once: what the dashboard, the history and the usage roll-up read.

Each record's key and value are JSON objects. A key says what the row is about; the newest row of a key is the truth.
Offsets and sizes are JSON numbers here: readers in JavaScript get them as text from the gateway.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

VERSION = 1


class Kind(StrEnum):
    BROKER = "broker"
    PARTITION = "partition"
    TENANT = "tenant"


@dataclass(frozen=True, slots=True)
class Key:
    broker: int
    broker_epoch: int
    kind: Kind
    tenant: str = ""
    """The owner of what the row is about; "" = root."""
    name: str = ""
    """The topic's own name, without its tenant."""
    partition: int = -1
    v: int = VERSION


@dataclass(frozen=True, slots=True)
class ReplicaRow:
    broker: int
    log_end_offset: int


@dataclass(frozen=True, slots=True)
class PartitionRow:
    at_ms: int
    topic_id: str
    leader: int
    leader_epoch: int
    isr: list[int]
    replicas: list[ReplicaRow]
    log_start_offset: int
    high_watermark: int
    last_stable_offset: int
    log_end_offset: int
    size_bytes: int
    last_append_ms: int
    """0: nothing was appended since the broker started."""
    is_deleted: bool = False


@dataclass(frozen=True, slots=True)
class TenantRow:
    """Running totals of one broker epoch."""

    at_ms: int
    bytes_in: int
    bytes_out: int
    records_in: int
    requests: int


@dataclass(frozen=True, slots=True)
class BrokerRow:
    at_ms: int
    started_ms: int
    connection_count: int
    partition_count: int
    bytes_in: int
    bytes_out: int
    sendfile_calls: int
    sendfile_bytes: int
    request_bytes_in_flight: int
    flush_count: int
    flush_ms_total: int
    loop_lag_ms: int
    """How late the sampler's own timer ran: a busy event loop shows here."""
    disk_free_bytes: int = -1
    is_disk_low: bool = False
    """Records are refused until there is room again."""


Row = PartitionRow | TenantRow | BrokerRow

_ROW_OF_KIND: dict[Kind, type[Row]] = {
    Kind.PARTITION: PartitionRow,
    Kind.TENANT: TenantRow,
    Kind.BROKER: BrokerRow,
}


def _plain(value: Any) -> dict[str, Any]:
    """Not `asdict`: it copies in depth, and a thousand rows a second would hold up the loop."""
    return {name: getattr(value, name) for name in type(value).__slots__}


_encode_key = json.JSONEncoder(separators=(",", ":"), sort_keys=True).encode
_encode_row = json.JSONEncoder(separators=(",", ":"), default=_plain).encode


def encode_key(key: Key) -> bytes:
    """Fields in one fixed order, so that equal keys are equal bytes."""
    return _encode_key(_plain(key)).encode()


def encode_row(row: Row) -> bytes:
    return _encode_row(_plain(row)).encode()


def decode_key(data: bytes) -> Key:
    fields = json.loads(data)
    return Key(**{**fields, "kind": Kind(fields["kind"])})


def decode_row(kind: Kind, data: bytes) -> Row:
    fields = json.loads(data)
    if kind is Kind.PARTITION:
        fields["replicas"] = [ReplicaRow(**replica) for replica in fields["replicas"]]
    return _ROW_OF_KIND[kind](**fields)
