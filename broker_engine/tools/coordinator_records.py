"""Records of `__consumer_offsets` in words: every key, and the values of offset commits."""

from __future__ import annotations

import struct
from typing import NamedTuple

_SHORT = struct.Struct(">h")
_INT = struct.Struct(">i")
_LONG = struct.Struct(">q")
_FLEXIBLE_SINCE = 4
_OFFSET_COMMIT_TYPES = (0, 1)
_KEYS: dict[int, tuple[str, tuple[str, ...]]] = {
    0: ("offset commit", ("group", "topic")),
    1: ("offset commit", ("group", "topic")),
    2: ("group", ("group",)),
    3: ("consumer group", ("group",)),
    4: ("consumer group partitions", ("group",)),
    5: ("consumer group member", ("group", "member")),
    6: ("consumer group target assignment", ("group",)),
    7: ("consumer group target assignment of member", ("group", "member")),
    8: ("consumer group current assignment", ("group", "member")),
}


class CommittedOffset(NamedTuple):
    offset: int
    leader_epoch: int
    metadata: str
    commit_timestamp: int


def describe_key(key: bytes) -> str:
    """ValueError where it is none that we know."""
    try:
        (kind,) = _SHORT.unpack_from(key)
        name, fields = _KEYS[kind]
        position, words = _SHORT.size, []
        for field in fields:
            text, position = _read_text(key, position)
            words.append(f"{field}={text}")
        if kind in _OFFSET_COMMIT_TYPES:
            words.append(f"partition={_INT.unpack_from(key, position)[0]}")
    except (struct.error, KeyError, IndexError, UnicodeDecodeError) as error:
        raise ValueError("not a key of __consumer_offsets") from error
    return f"{name} {' '.join(words)}"


def describe_value(key: bytes, value: bytes | None) -> str:
    """ValueError where it is none that we know."""
    if value is None:
        return "removed"
    try:
        (version,) = _SHORT.unpack_from(value)
        if _SHORT.unpack_from(key)[0] in _OFFSET_COMMIT_TYPES:
            return " ".join(f"{name}={field}" for name, field in read_offset_commit(value)._asdict().items())
    except (struct.error, IndexError, UnicodeDecodeError) as error:
        raise ValueError("not a value of __consumer_offsets") from error
    return f"version {version}, {len(value)} bytes"


def read_offset_commit(value: bytes) -> CommittedOffset:
    (version,) = _SHORT.unpack_from(value)
    (offset,) = _LONG.unpack_from(value, 2)
    position = 10
    leader_epoch = -1
    if version >= 3:
        (leader_epoch,) = _INT.unpack_from(value, position)
        position += _INT.size
    read = _read_compact_text if version >= _FLEXIBLE_SINCE else _read_text
    metadata, position = read(value, position)
    return CommittedOffset(offset, leader_epoch, metadata, _LONG.unpack_from(value, position)[0])


def _read_text(data: bytes, position: int) -> tuple[str, int]:
    (size,) = _SHORT.unpack_from(data, position)
    return _cut(data, position + _SHORT.size, size)


def _read_compact_text(data: bytes, position: int) -> tuple[str, int]:
    size = shift = 0
    while True:
        byte = data[position]
        position += 1
        size |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return _cut(data, position, size - 1)


def _cut(data: bytes, position: int, size: int) -> tuple[str, int]:
    end = position + max(size, 0)
    if end > len(data):
        raise IndexError("text beyond the end")
    return data[position:end].decode(), end
