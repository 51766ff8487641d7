"""Bytes from a stream into frames: a 4-byte length, then that many bytes. Pure."""

from __future__ import annotations

_LENGTH_BYTES = 4


class FrameTooLarge(Exception):  # noqa: N818 - named for what arrived
    """The length in front is negative or above the limit: the peer does not speak Kafka, or means harm."""


class FrameReader:
    def __init__(self, frame_bytes_max: int) -> None:
        self._frame_bytes_max = frame_bytes_max
        self._length = bytearray()
        self._frame: bytearray | None = None
        self._filled = 0

    def feed(self, data: memoryview) -> list[memoryview]:
        """The frames that `data` completes. They own their bytes; `data` may be reused after the call."""
        frames: list[memoryview] = []
        while data.nbytes:
            data = self._fill_length(data) if self._frame is None else self._fill_frame(data)
            if self._frame is not None and self._filled == len(self._frame):
                frames.append(memoryview(self._frame))
                self._frame = None
        return frames

    def _fill_length(self, data: memoryview) -> memoryview:
        missing = _LENGTH_BYTES - len(self._length)
        self._length += data[:missing]
        if len(self._length) == _LENGTH_BYTES:
            self._frame, self._filled = bytearray(self._checked_length()), 0
            self._length.clear()
        return data[missing:]

    def _checked_length(self) -> int:
        length = int.from_bytes(self._length, "big", signed=True)
        if not 0 < length <= self._frame_bytes_max:
            raise FrameTooLarge(f"a frame of {length} bytes (at most {self._frame_bytes_max} are taken)")
        return length

    def _fill_frame(self, data: memoryview) -> memoryview:
        assert self._frame is not None
        size = min(len(self._frame) - self._filled, data.nbytes)
        self._frame[self._filled : self._filled + size] = data[:size]
        self._filled += size
        return data[size:]
