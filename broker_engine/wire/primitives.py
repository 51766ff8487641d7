"""What generated readers and writers call: unsigned varints, tag sections, uuids, record parts.

Input is hostile here: nothing is allocated by a length that was not checked.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Any
from uuid import UUID

from broker_engine.wire.errors import WireError, refuse_length, refuse_memory

NULL_UUID = UUID(int=0)

# What one skipped tag is charged: it allocates nothing, but a frame full of them would hold the loop for seconds.
SKIPPED_TAG_COST_BYTES = 64

# Below this a copy into the buffer is cheaper than one more part in sendmsg.
PART_BYTES_MIN = 1024


# A part of a message in the order of sending. Any: whatever object with `size_bytes` (a range of a file) a handler put
# into a records field comes out again as it is; only the network seam knows what it can send.
Part = bytes | memoryview | Any


def read_uvarint_rest(buffer: memoryview, position: int, first: int) -> tuple[int, int]:
    """Finish an unsigned varint whose first byte was 128 or more. At most five bytes; wraps to int32 as Kafka does."""
    value = first & 0x7F
    for shift in (7, 14, 21, 28):
        byte = buffer[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 128:
            value &= 0xFFFFFFFF
            return (value if value < 0x80000000 else value - 0x100000000), position
    raise WireError("varint longer than five bytes")


def read_uvarint(buffer: memoryview, position: int) -> tuple[int, int]:
    first = buffer[position]
    return (first, position + 1) if first < 128 else read_uvarint_rest(buffer, position + 1, first)


def write_uvarint(out: bytearray, value: int) -> None:
    while value > 127:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)


def skip_tags(buffer: memoryview, position: int, count: int, memory_bytes: int) -> tuple[int, int]:
    """Step over `count` tagged fields; give the position after them and what is left of the memory budget."""
    end = len(buffer)
    if count < 0 or count * 2 > end - position:
        refuse_length("tagged fields", count, end - position)
    memory_bytes -= count * SKIPPED_TAG_COST_BYTES
    if memory_bytes < 0:
        refuse_memory("tagged fields")
    for _ in range(count):
        size = buffer[position + 1]
        if buffer[position] < 128 and size < 128:
            position += 2 + size
        else:
            position = _skip_long_tag(buffer, position, end)
    if position > end:
        refuse_length("tagged fields", count, 0)
    return position, memory_bytes


def _skip_long_tag(buffer: memoryview, position: int, end: int) -> int:
    _, position = read_uvarint(buffer, position)
    size, position = read_uvarint(buffer, position)
    if size < 0 or size > end - position:
        refuse_length("tagged field", size, end - position)
    return position + size


@lru_cache(maxsize=4096)
def uuid_from(raw: bytes) -> UUID:
    """Topic ids repeat on every fetch, and building a UUID costs twenty times a cache hit."""
    return UUID(bytes=raw)


def record_pieces(value: Any) -> tuple[int, Iterable[Part]]:
    """The size and the parts of a records field that is not plain bytes: a sized object, or a list of parts."""
    pieces = value if isinstance(value, (list, tuple)) else (value,)
    size_bytes = 0
    for piece in pieces:
        size_bytes += len(piece) if isinstance(piece, (bytes, memoryview)) else piece.size_bytes
    return size_bytes, pieces
