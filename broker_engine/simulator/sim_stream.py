"""SimStream: the engine's connection on a simulated network. Two ends, a pipe in each direction."""

from __future__ import annotations

import zlib
from collections import deque
from collections.abc import Sequence
from typing import TYPE_CHECKING

from broker_engine.net.stream import (
    Buffer,
    OnBytes,
    OnClose,
    OnDrained,
    Part,
    is_file_range,
    release_all,
)
from broker_engine.simulator.sim_process import Process

if TYPE_CHECKING:
    from broker_engine.simulator.sim_net import SimNet

_Item = bytes | None
"""What travels: bytes, or None for the end."""


class Pipe:
    """One direction: what was sent and has not been read, in order."""

    def __init__(self, net: SimNet, source: SimStream, target: SimStream) -> None:
        self._net = net
        self._source = source
        self._target = target
        self._items: deque[tuple[float, _Item]] = deque()
        self.waiting_bytes = 0
        self._last_arrival_s = 0.0
        self._is_scheduled = False
        self._is_broken = False

    def put(self, item: _Item) -> None:
        net = self._net
        arrival_s = max(self._last_arrival_s, net.loop.now_s + net.delay_s(self._source.host, self._target.host))
        self._last_arrival_s = arrival_s
        self._items.append((arrival_s, item))
        if item is not None:
            self.waiting_bytes += len(item)
        self.kick()

    def kick(self) -> None:
        """Deliver the first item when its time has come: the process of the target reads it when it runs."""
        if not self._is_scheduled and self._items and not self._is_broken:
            loop, target = self._net.loop, self._target
            when_s = max(self._items[0][0], loop.now_s)
            if target.is_dead:  # its kernel answers
                self._is_scheduled = True
                loop.call_as(loop.world, when_s, self._arrive)
            elif target.is_reading:
                self._is_scheduled = True
                loop.call_as(target.process, when_s, self._arrive)

    def _arrive(self) -> None:
        self._is_scheduled = False
        if self._is_broken or not self._items:
            return
        net, source, target = self._net, self._source, self._target
        if not net.is_open(source.host, target.host) or not net.host(target.host).is_on:
            net.wait_for_way(self)
        elif target.is_dead:
            source.break_off(ConnectionResetError("connection reset by peer"))
        elif target.is_reading:
            self._read()

    def _read(self) -> None:
        _, item = self._items.popleft()
        self.kick()
        if item is None:
            self._target.finish(None)
            return
        self.waiting_bytes -= len(item)
        self._net.loop.note(zlib.crc32(item))
        self._target.receive(item)
        self._source.on_room(self.waiting_bytes)

    def break_off(self) -> None:
        self._is_broken = True
        self.lose()

    def lose(self) -> None:
        """What is under way. Whoever sends more will be told that nobody is there."""
        self._items.clear()
        self._is_scheduled = False  # the reader's process may be dead, and its callback with it
        self.waiting_bytes = 0


class SimStream:
    """See Stream."""

    def __init__(self, net: SimNet, process: Process, host: str, peer: tuple[str, int]) -> None:
        self.process = process
        self.host = host
        self.is_dead = False
        """The process is gone, or nobody holds this end any more: whoever sends here is told so."""
        self._net = net
        self._peer = peer
        self._is_reading = False
        self._has_waited = False
        self._is_closing = self._is_closed = False
        self._on_bytes: OnBytes | None = None
        self._on_close: OnClose | None = None
        self._on_drained: OnDrained | None = None

    _other: SimStream
    _out: Pipe
    _in: Pipe

    def attach(self, other: SimStream) -> None:
        there, back = Pipe(self._net, self, other), Pipe(self._net, other, self)
        self._other, self._out, self._in = other, there, back
        other._other, other._out, other._in = self, back, there

    # --- Stream

    @property
    def peer(self) -> str:
        return f"{self._peer[0]}:{self._peer[1]}"

    @property
    def peer_host(self) -> str:
        return self._peer[0]

    @property
    def is_closed(self) -> bool:
        return self._is_closing or self._is_closed

    @property
    def write_buffer_bytes(self) -> int:
        return 0 if self._is_closed else max(0, self._out.waiting_bytes - self._net.window_bytes)

    def start(self, on_bytes: OnBytes, on_close: OnClose, on_drained: OnDrained | None = None) -> None:
        assert self._on_bytes is None, "a stream is started once"
        self._on_bytes, self._on_close, self._on_drained = on_bytes, on_close, on_drained
        if self._is_closed:
            self._tell_closed(self._close_reason)
        self.resume()

    def send(self, parts: Sequence[Part]) -> None:
        if self.is_closed:
            release_all(parts)
            return
        try:
            data = _gather(parts)
        except OSError as error:  # the file ended early, or the disk failed: the length is promised already
            self.break_off(error)
            return
        for piece in self._pieces(data):
            self._out.put(piece)
        if self.write_buffer_bytes:
            self._has_waited = True

    def _pieces(self, data: bytes) -> list[bytes]:
        net = self._net
        if len(data) < 2 or net.random.random() >= net.split_ratio:
            return [data]
        at = net.random.randrange(1, len(data))
        return [data[:at], data[at:]]

    def pause(self) -> None:
        self._is_reading = False

    def resume(self) -> None:
        if not self._is_reading and not self.is_closed:
            self._is_reading = True
            self._in.kick()

    def read_into(self, room: memoryview) -> None:
        """Not heeded: pieces come as they were sent."""

    def close(self) -> None:
        if not self.is_closed:
            self._is_closing = True
            self.finish(None)

    def abort(self) -> None:
        self.finish(None)

    # --- for the network

    _close_reason: Exception | None = None

    @property
    def is_reading(self) -> bool:
        return self._is_reading and self._on_bytes is not None

    def receive(self, data: bytes) -> None:
        assert self._on_bytes is not None
        self._on_bytes(memoryview(data))

    def on_room(self, waiting_bytes: int) -> None:
        """The peer has read something."""
        if self._has_waited and waiting_bytes <= self._net.window_bytes and not self.is_closed:
            self._has_waited = False
            if self._on_drained is not None:
                self._net.loop.call_as(self.process, self._net.loop.now_s, self._drained)

    def _drained(self) -> None:
        if not self.is_closed and self._on_drained is not None:
            self._on_drained()

    def finish(self, error: Exception | None) -> None:
        """This end is closed. What it sent before is still on its way."""
        if self._is_closed:
            return
        self._is_closed = self.is_dead = True
        self._is_reading = False
        self._close_reason = error
        self._in.break_off()
        self._net.forget(self)
        self._tell_closed(error)
        if error is None and not self._other.is_dead:
            self._out.put(None)

    def _tell_closed(self, error: Exception | None) -> None:
        if self._on_close is not None:
            self._net.loop.call_as(self.process, self._net.loop.now_s, self._on_close, error)

    def break_off(self, error: Exception) -> None:
        """A reset: both ends are told, nothing that was under way arrives."""
        self._out.break_off()
        self._in.break_off()
        self._other.finish(error)
        self.finish(error)

    def die(self, *, is_silent: bool) -> None:
        """The process behind this end is gone. Its kernel says so, unless that is gone too."""
        self._is_closed = self.is_dead = True
        self._is_reading = False
        self._in.lose()
        if is_silent:
            self._out.break_off()
        elif self._net.random.random() < 0.5:
            self._out.put(None)
        else:
            self._out.break_off()
            self._out_reset()

    def _out_reset(self) -> None:
        """The kernel answers for the dead process, as soon as the way is open."""
        error = ConnectionResetError("connection reset by peer")
        delay_s = self._net.delay_s(self.host, self._other.host)
        self._net.loop.call_as(self._net.loop.world, self._net.loop.now_s + delay_s, self._reset_other, error)

    def _reset_other(self, error: Exception) -> None:
        if self._net.is_open(self.host, self._other.host):
            self._other.finish(error)


def _gather(parts: Sequence[Part]) -> bytes:
    try:
        return b"".join([_read(part) for part in parts])
    finally:
        release_all(parts)


def _read(part: Part) -> Buffer:
    if not is_file_range(part):
        return part  # type: ignore[return-value]  # what is no range of a file is a buffer
    data = part.read()
    if len(data) != part.size_bytes:
        raise ConnectionAbortedError("the file ended early")
    return data
