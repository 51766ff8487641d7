"""What producers did last, as bytes in the format of Kafka's `.snapshot` files.

Kafka writes one entry per producer: its last batch. We remember five, so that a resend is told from a gap after a
restart too, and write one entry per batch, oldest first. Kafka takes the last one of each producer, and loses nothing.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import NamedTuple

from crc32c import crc32c

_VERSION = 1
_HEAD = struct.Struct(">hIi")
_ENTRY = struct.Struct(">qhiqiqiq")
_COVERED_FROM = 6
"""The CRC covers everything behind itself."""


class ProducerEntry(NamedTuple):
    producer_id: int
    producer_epoch: int
    last_sequence: int
    """-1, as `last_offset`: no batch of this epoch is known."""
    last_offset: int
    offset_delta: int
    timestamp: int
    coordinator_epoch: int
    txn_first_offset: int
    """-1: no transaction is open."""


def pack_snapshot(entries: Sequence[ProducerEntry]) -> bytes:
    body = b"".join(_ENTRY.pack(*entry) for entry in entries)
    covered = len(entries).to_bytes(4, "big") + body
    return _HEAD.pack(_VERSION, crc32c(covered), len(entries)) + body


def parse_snapshot(data: bytes) -> list[ProducerEntry] | None:
    """None where it is no whole, sound snapshot."""
    if len(data) < _HEAD.size:
        return None
    version, crc, count = _HEAD.unpack_from(data)
    is_sound = version == _VERSION and crc == crc32c(data[_COVERED_FROM:]) and count >= 0
    if not is_sound or len(data) < _HEAD.size + count * _ENTRY.size:
        return None
    return [ProducerEntry(*_ENTRY.unpack_from(data, _HEAD.size + number * _ENTRY.size)) for number in range(count)]
