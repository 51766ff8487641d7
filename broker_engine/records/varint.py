"""Zigzag variable-length integers as record batches use them.

Readers take (buffer, position) and answer (value, next position). They raise IndexError at the buffer's end and
ValueError on an encoding that is too long; `decode` turns both into CorruptBatch.
"""

from __future__ import annotations

_VARINT_SHIFT_MAX = 28
_VARLONG_SHIFT_MAX = 63
_UINT32_END = 1 << 32
_UINT64_END = 1 << 64


def read_varint(buffer: bytes | memoryview, position: int) -> tuple[int, int]:
    """A zigzag int32."""
    byte = buffer[position]
    if byte < 0x80:  # most lengths and deltas
        return (byte >> 1) ^ -(byte & 1), position + 1
    raw, position = _read_unsigned(buffer, position, _VARINT_SHIFT_MAX)
    if raw >= _UINT32_END:
        raise ValueError("varint does not fit 32 bits")
    return (raw >> 1) ^ -(raw & 1), position


def read_varlong(buffer: bytes | memoryview, position: int) -> tuple[int, int]:
    """A zigzag int64."""
    byte = buffer[position]
    if byte < 0x80:
        return (byte >> 1) ^ -(byte & 1), position + 1
    raw, position = _read_unsigned(buffer, position, _VARLONG_SHIFT_MAX)
    if raw >= _UINT64_END:
        raise ValueError("varlong does not fit 64 bits")
    return (raw >> 1) ^ -(raw & 1), position


def _read_unsigned(buffer: bytes | memoryview, position: int, shift_max: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = buffer[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position
        shift += 7
        if shift > shift_max:
            raise ValueError("variable-length integer is too long")


def write_varint(out: bytearray, value: int) -> None:
    """Append a zigzag integer of up to 64 bits."""
    raw = (value << 1) ^ (value >> 63)
    while raw > 0x7F:
        out.append((raw & 0x7F) | 0x80)
        raw >>= 7
    out.append(raw)
