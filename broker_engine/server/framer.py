"""Bytes to frames: an int32 length, then that many bytes. Pure; keeps what arrived until somebody wants the next frame.

A frame is handed out as a view of the bytes as they were received: no copy is made of it, however large it is. For one
that comes in many pieces `make_room` sets a buffer of its size aside, and a stream may receive right into it.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

_LENGTH = struct.Struct(">i")
_LENGTH_BYTES = _LENGTH.size


class FrameRefused(Exception):  # noqa: N818 - reads as what it is
    """The peer announced a length that we do not take; there is no way to go on with this connection."""


class Framer:
    def __init__(self) -> None:
        self._buffer = bytearray()
        self._start = self._end = 0  # what arrived and was not handed out; behind it is room
        self._is_lent = False  # somebody holds a view of the buffer: it must not grow any more

    @property
    def buffered_bytes(self) -> int:
        return self._end - self._start

    @property
    def is_inside_frame(self) -> bool:
        return self._end > self._start

    def feed(self, data: memoryview) -> None:
        end = self._end + len(data)
        if data.obj is not self._buffer:
            if end > len(self._buffer):
                self._grow(data)
                return
            self._buffer[self._end : end] = data
        self._end = end

    def _grow(self, data: memoryview) -> None:
        if self._is_lent or self._start == self._end or self._end < len(self._buffer):
            self._buffer = self._buffer[self._start : self._end]
            self._start, self._is_lent = 0, False
        self._buffer += data
        self._end = len(self._buffer)

    def make_room(self) -> memoryview:
        """For the rest of the frame that was announced, and no byte more. What is received there is to be fed, too."""
        announced = self.announced_bytes()
        assert announced is not None
        size_bytes = _LENGTH_BYTES + announced
        if self._start or self._is_lent or len(self._buffer) != size_bytes:
            buffer = bytearray(size_bytes)
            self._end -= self._start
            buffer[: self._end] = memoryview(self._buffer)[self._start : self._start + self._end]
            self._buffer, self._start, self._is_lent = buffer, 0, False
        return memoryview(self._buffer)[self._end :]

    def announced_bytes(self) -> int | None:
        """The length of the frame that comes next, once its four bytes are there."""
        if self.buffered_bytes < _LENGTH_BYTES:
            return None
        return int(_LENGTH.unpack_from(self._buffer, self._start)[0])

    def next_frame(self, frame_bytes_max: int) -> memoryview | None:
        """The next whole frame, or None while it is not there. FrameRefused as soon as its length is known as bad."""
        buffer, begin = self._buffer, self._start + _LENGTH_BYTES
        if self._end < begin:
            return None
        (length,) = _LENGTH.unpack_from(buffer, self._start)
        if not 0 < length <= frame_bytes_max:
            raise FrameRefused(f"a frame of {length} bytes; allowed are 1 to {frame_bytes_max}")
        end = begin + length
        if self._end < end:
            return None
        self._start = end
        self._is_lent = True
        return memoryview(buffer)[begin:end]

    def following(self, frame_bytes_max: int) -> Iterator[memoryview]:
        """The whole frames that come next, without handing them out: `skip` does that. Ends at one above the bound."""
        buffer, position = memoryview(self._buffer), self._start
        while position + _LENGTH_BYTES <= self._end:
            (length,) = _LENGTH.unpack_from(buffer, position)
            begin, position = position + _LENGTH_BYTES, position + _LENGTH_BYTES + length
            if not 0 < length <= frame_bytes_max or position > self._end:
                return
            yield buffer[begin:position]

    def skip(self, count: int) -> None:
        """So many of those that `following` showed were taken."""
        for _ in range(count):
            self._start += _LENGTH_BYTES + _LENGTH.unpack_from(self._buffer, self._start)[0]
