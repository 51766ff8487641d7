"""The network seam (contracts.md section 4): all that the engine and its client know of a connection.

Three implementations stand behind it: an owned socket (sockets.py), TLS (tls.py) and, later, the simulator's stream.
Framing, budgets, muting and ordering stand above it. Callbacks run on the event loop and never overlap.
"""

from __future__ import annotations

import ssl
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeGuard


class _Handle(Protocol):
    def fileno(self) -> int: ...


class FileRange(Protocol):
    """A piece of a file that is sent without a copy. It pins its file; whoever has it calls release() exactly once."""

    @property
    def handle(self) -> _Handle: ...

    @property
    def position(self) -> int: ...

    @property
    def size_bytes(self) -> int: ...

    def read(self) -> bytes: ...

    def release(self) -> None: ...


Buffer = bytes | bytearray | memoryview
Part = Buffer | FileRange

OnBytes = Callable[[memoryview], None]
"""Gets what arrived. The view is valid only during the call: copy what is kept."""

OnClose = Callable[[Exception | None], None]
"""Called exactly once, from the loop, after the last on_bytes. None: the peer or we closed in good order."""

OnDrained = Callable[[], None]
"""Called when everything that had to wait for the socket has left; not when send() could write all of it at once."""


def is_file_range(part: Part) -> TypeGuard[FileRange]:
    return not isinstance(part, bytes | bytearray | memoryview)


def part_size_bytes(part: Part) -> int:
    if isinstance(part, bytes):  # nearly all are: asked first, and once per part sent
        return len(part)
    if isinstance(part, memoryview):
        return part.nbytes
    return len(part) if isinstance(part, bytearray) else part.size_bytes


def release_all(parts: Sequence[Part]) -> None:
    for part in parts:
        if is_file_range(part):
            part.release()


class Stream(Protocol):
    @property
    def peer(self) -> str:
        """`host:port` of the other side, for logs and limits."""
        ...

    @property
    def peer_host(self) -> str: ...

    @property
    def is_closed(self) -> bool:
        """True once no further byte can be sent or received (a close() that still flushes counts as closed)."""
        ...

    @property
    def write_buffer_bytes(self) -> int:
        """What was given to send() and has not left yet."""
        ...

    def start(self, on_bytes: OnBytes, on_close: OnClose, on_drained: OnDrained | None = None) -> None:
        """Begin to read. To be called once, before anything else."""
        ...

    def send(self, parts: Sequence[Part]) -> None:
        """Take over `parts` and write them in order; never blocks. On a closed stream they are released and dropped."""
        ...

    def pause(self) -> None:
        """Stop reading: the peer's TCP window fills and it has to wait."""
        ...

    def resume(self) -> None: ...

    def read_into(self, room: memoryview) -> None:
        """Receive the next bytes there, until it is full; `on_bytes` gets views of it. A stream may not heed this."""
        ...

    def close(self) -> None:
        """Stop reading, write what waits, then close."""
        ...

    def abort(self) -> None:
        """Close now; what waits is released and dropped."""
        ...


class Listener(Protocol):
    @property
    def address(self) -> tuple[str, int]: ...

    async def accept(self) -> Stream: ...

    def close(self) -> None: ...


class Dialer(Protocol):
    async def connect(self, host: str, port: int, *, tls: ssl.SSLContext | None = None) -> Stream:
        """OSError when nobody answers. The stream has not been started."""
        ...


@dataclass(slots=True)
class NetCounters:
    """Running totals of one process; the proof that fetches go by sendfile."""

    bytes_in: int = 0
    bytes_out: int = 0
    recv_calls: int = 0
    send_calls: int = 0
    sendfile_calls: int = 0
    sendfile_bytes: int = 0
    cold_range_count: int = 0
    """Pieces of a file that had to be read from the disk by a thread before they were sent."""
