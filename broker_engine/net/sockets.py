"""Owned non-blocking sockets: recv_into, sendmsg, sendfile, on any asyncio loop.

uvloop has neither loop.sendfile nor loop.sock_sendfile, so the connection keeps its socket and asks the loop only for
readiness (measured with 100 KB answers: 3.5 times a transport with pread). Ranges under 16 KiB are read and ride the
gathered sendmsg.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import ssl
from collections import deque
from collections.abc import Sequence

from broker_engine.net.page_cache import is_in_page_cache, read_into_page_cache
from broker_engine.net.stream import (
    Buffer,
    FileRange,
    NetCounters,
    OnBytes,
    OnClose,
    OnDrained,
    Part,
    Stream,
    is_file_range,
    part_size_bytes,
    release_all,
)
from broker_engine.net.tls import TlsStream

SENDFILE_BYTES_MIN = 16 * 1024
"""Below this a read and one sendmsg cost less than a sendfile of its own."""

_RECEIVE_BUFFER_BYTES = 256 * 1024
_GATHER_PARTS_MAX = 512  # IOV_MAX is 1024
_GATHER_BYTES_MAX = 1024 * 1024
_SENDFILE_CHUNK_BYTES = 1024 * 1024
_TURN_BYTES_MAX = 4 * 1024 * 1024  # then other connections get their turn
LISTEN_BACKLOG_DEFAULT = 1024

# One buffer serves all streams of a process: on_bytes runs to its end before the next recv, and nobody keeps the view.
# Large frames have a room of their own (`read_into`).
_receive_buffer = memoryview(bytearray(_RECEIVE_BUFFER_BYTES))


class SocketStream:
    """One TCP connection. See `Stream` for what the methods promise."""

    def __init__(self, loop: asyncio.AbstractEventLoop, sock: socket.socket, counters: NetCounters) -> None:
        self._loop = loop
        self._socket = sock
        self._fd = sock.fileno()
        self._counters = counters
        self._pending: deque[Part] = deque()
        self._write_buffer_bytes = 0
        self._sent_of_head = 0  # how much of a FileRange at the head has left already
        self._is_reading = self._is_writing = False
        self._is_warming = False  # a thread reads the range at the head into the page cache
        self._has_waited = False  # since the last time that everything had left
        self._is_closing = self._is_closed = False
        self._room: memoryview | None = None
        self._on_bytes: OnBytes | None = None
        self._on_close: OnClose | None = None
        self._on_drained: OnDrained | None = None
        self._peer = sock.getpeername()

    @property
    def peer(self) -> str:
        return f"{self._peer[0]}:{self._peer[1]}"

    @property
    def peer_host(self) -> str:
        return str(self._peer[0])

    @property
    def is_closed(self) -> bool:
        return self._is_closing or self._is_closed

    @property
    def write_buffer_bytes(self) -> int:
        return self._write_buffer_bytes

    def start(self, on_bytes: OnBytes, on_close: OnClose, on_drained: OnDrained | None = None) -> None:
        assert self._on_bytes is None, "a stream is started once"
        self._on_bytes, self._on_close, self._on_drained = on_bytes, on_close, on_drained
        self.resume()

    def pause(self) -> None:
        if self._is_reading:
            self._loop.remove_reader(self._fd)
            self._is_reading = False

    def resume(self) -> None:
        if not self._is_reading and not self.is_closed:
            self._loop.add_reader(self._fd, self._read)
            self._is_reading = True

    def send(self, parts: Sequence[Part]) -> None:
        if self.is_closed:
            release_all(parts)
            return
        if len(parts) == 1 and not self._pending and isinstance(parts[0], bytes):
            parts = self._send_at_once(parts[0])  # most answers: a run of them is one part, and nothing waits
            if not parts:
                return
        self._pending.extend(parts)
        self._write_buffer_bytes += sum(map(part_size_bytes, parts))
        if not self._is_writing and not self._is_warming:
            self._write()

    def _send_at_once(self, data: bytes) -> Sequence[Part]:
        """What the socket did not take. An error is left to be met again by who sends that."""
        try:
            sent = self._socket.send(data)
        except OSError:
            return (data,)
        self._counters.send_calls += 1
        self._counters.bytes_out += sent
        return () if sent == len(data) else (memoryview(data)[sent:],)

    def close(self) -> None:
        if self.is_closed:
            return
        self.pause()
        self._is_closing = True
        if not self._pending:
            self._finish(None)

    def abort(self) -> None:
        self._finish(None)

    def read_into(self, room: memoryview) -> None:
        self._room = room

    def _read(self) -> None:
        buffer = self._room or _receive_buffer
        try:
            size = self._socket.recv_into(buffer)
        except (BlockingIOError, InterruptedError):
            return
        except OSError as error:
            self._finish(error)
            return
        if size == 0:
            self._finish(None)
            return
        self._counters.recv_calls += 1
        self._counters.bytes_in += size
        if buffer is self._room:
            self._room = buffer[size:] if size < len(buffer) else None
        assert self._on_bytes is not None
        self._on_bytes(buffer[:size])

    def _write(self) -> None:
        """Write until nothing waits, the socket is full, or this turn is used up."""
        left_of_turn = _TURN_BYTES_MAX
        try:
            while self._pending and left_of_turn > 0 and not self._is_warming:
                left_of_turn -= self._write_head()
        except (BlockingIOError, InterruptedError):
            self._has_waited = True
            self._set_writing(True)
            return
        except OSError as error:
            self._finish(error)
            return
        self._set_writing(bool(self._pending) and not self._is_warming)
        if self._pending:
            self._has_waited = True
        else:
            self._after_drained()

    def _after_drained(self) -> None:
        has_waited, self._has_waited = self._has_waited, False
        if self._is_closing:
            self._finish(None)
        elif has_waited and self._on_drained is not None:
            self._on_drained()

    def _set_writing(self, is_writing: bool) -> None:
        if is_writing == self._is_writing:
            return
        self._is_writing = is_writing
        if is_writing:
            self._loop.add_writer(self._fd, self._write)
        else:
            self._loop.remove_writer(self._fd)

    def _write_head(self) -> int:
        head = self._pending[0]
        if is_file_range(head) and head.size_bytes >= SENDFILE_BYTES_MIN:
            return self._send_file(head)
        return self._send_gathered()

    def _send_file(self, file_range: FileRange) -> int:
        position = file_range.position + self._sent_of_head
        count = min(file_range.size_bytes - self._sent_of_head, _SENDFILE_CHUNK_BYTES)
        if not is_in_page_cache(file_range.handle.fileno(), position, count):
            self._warm(file_range, position, count)
            return 0
        sent = os.sendfile(self._fd, file_range.handle.fileno(), position, count)
        if sent == 0:
            # The length is on its way to the client already, and the file has become shorter: nothing else is honest.
            raise ConnectionAbortedError(f"the file ended {count} bytes early")
        self._counters.sendfile_calls += 1
        self._counters.sendfile_bytes += sent
        self._count_sent(sent)
        self._sent_of_head += sent
        if self._sent_of_head == file_range.size_bytes:
            self._pending.popleft()
            self._sent_of_head = 0
            file_range.release()
        return sent

    def _send_gathered(self) -> int:
        buffers, is_more = self._take_buffers()
        try:
            sent = self._socket.sendmsg(buffers, (), socket.MSG_MORE if is_more else 0) if buffers else 0
        except OSError:
            self._pending.extendleft(reversed(buffers))
            raise
        self._counters.send_calls += 1
        self._count_sent(sent)
        self._put_back_unsent(buffers, sent)
        return sent

    def _take_buffers(self) -> tuple[list[Buffer], bool]:
        """The run of parts that one sendmsg carries; and whether a sendfile follows it at once."""
        buffers: list[Buffer] = []
        size = 0
        while self._pending and len(buffers) < _GATHER_PARTS_MAX and size < _GATHER_BYTES_MAX:
            part = self._pending[0]
            if not isinstance(part, bytes | bytearray | memoryview):
                if part.size_bytes >= SENDFILE_BYTES_MIN:
                    return buffers, True
                part = _read_and_release(part)
            self._pending.popleft()
            size += part_size_bytes(part)
            buffers.append(part)
        return buffers, False

    def _put_back_unsent(self, buffers: list[Buffer], sent: int) -> None:
        index = 0
        while index < len(buffers) and sent >= part_size_bytes(buffers[index]):
            sent -= part_size_bytes(buffers[index])
            index += 1
        if index < len(buffers):
            rest = [memoryview(buffers[index]).cast("B")[sent:], *buffers[index + 1 :]]
            self._pending.extendleft(reversed(rest))

    def _count_sent(self, size_bytes: int) -> None:
        self._write_buffer_bytes -= size_bytes
        self._counters.bytes_out += size_bytes

    def _warm(self, file_range: FileRange, position: int, count: int) -> None:
        """Let a thread fetch the piece from the disk, so that a cold reader never stops the loop."""
        self._is_warming = True
        self._counters.cold_range_count += 1
        future = self._loop.run_in_executor(None, read_into_page_cache, file_range.handle.fileno(), position, count)
        future.add_done_callback(self._on_warm)

    def _on_warm(self, future: asyncio.Future[None]) -> None:
        self._is_warming = False
        error = future.exception() if not future.cancelled() else ConnectionAbortedError("shutting down")
        if self._is_closed:
            release_all(self._pending)
            self._pending.clear()
        elif error is not None:
            self._finish(error if isinstance(error, Exception) else None)
        else:
            self._write()

    def _finish(self, error: Exception | None) -> None:
        if self._is_closed:
            return
        self.pause()
        self._set_writing(False)
        self._is_closed = True
        self._write_buffer_bytes = 0
        if not self._is_warming:  # else the thread still reads from the pinned file: _on_warm releases it
            release_all(self._pending)
            self._pending.clear()
        self._socket.close()
        if self._on_close is not None:
            self._loop.call_soon(self._on_close, error)


def _read_and_release(file_range: FileRange) -> bytes:
    data = file_range.read()
    if len(data) != file_range.size_bytes:
        raise ConnectionAbortedError(f"the file ended {file_range.size_bytes - len(data)} bytes early")
    file_range.release()
    return data


def _prepare(sock: socket.socket) -> socket.socket:
    sock.setblocking(False)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    return sock


class SocketListener:
    """A bound, listening socket. Port 0 picks a free one; `address` tells which."""

    def __init__(
        self,
        host: str,
        port: int,
        *,
        counters: NetCounters | None = None,
        tls: ssl.SSLContext | None = None,
        backlog: int = LISTEN_BACKLOG_DEFAULT,
    ) -> None:
        self.counters = counters if counters is not None else NetCounters()
        self._tls = tls
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        self._socket = socket.socket(family, kind, protocol)
        try:
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            self._socket.bind(address)
            self._socket.listen(backlog)
            self._socket.setblocking(False)
        except OSError:
            self._socket.close()
            raise

    @property
    def address(self) -> tuple[str, int]:
        host, port = self._socket.getsockname()[:2]
        return host, port

    async def accept(self) -> Stream:
        loop = asyncio.get_running_loop()
        while True:
            sock, _ = await loop.sock_accept(self._socket)
            try:
                stream = SocketStream(loop, _prepare(sock), self.counters)
            except OSError:  # the peer hung up before we looked: there is nobody to serve
                sock.close()
                continue
            return TlsStream(stream, self._tls, is_server=True) if self._tls is not None else stream

    def close(self) -> None:
        self._socket.close()


class SocketDialer:
    def __init__(self, loop: asyncio.AbstractEventLoop | None = None, *, counters: NetCounters | None = None) -> None:
        self._loop = loop
        self.counters = counters if counters is not None else NetCounters()

    async def connect(self, host: str, port: int, *, tls: ssl.SSLContext | None = None) -> Stream:
        loop = self._loop if self._loop is not None else asyncio.get_running_loop()
        sock = await _connect_first(loop, host, port)
        stream = SocketStream(loop, _prepare(sock), self.counters)
        return TlsStream(stream, tls, is_server=False, server_name=host) if tls is not None else stream


async def _connect_first(loop: asyncio.AbstractEventLoop, host: str, port: int) -> socket.socket:
    """The first of the host's addresses that answers; the last one's error if none does."""
    addresses = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    last_error: OSError = OSError(f"{host} has no address")
    for family, kind, protocol, _, address in addresses:
        sock = socket.socket(family, kind, protocol)
        with contextlib.ExitStack() as closing:
            closing.callback(sock.close)
            sock.setblocking(False)
            try:
                await loop.sock_connect(sock, address)
            except OSError as error:
                last_error = error
                continue
            closing.pop_all()
            return sock
    raise last_error
