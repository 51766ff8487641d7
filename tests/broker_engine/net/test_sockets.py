"""The owned socket: order, large files by sendfile, small ones gathered, pins released exactly once, slow readers."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest
import uvloop

from broker_engine.net.page_cache import is_in_page_cache
from broker_engine.net.sockets import SENDFILE_BYTES_MIN, SocketDialer, SocketListener
from broker_engine.net.stream import NetCounters, Stream


@pytest.fixture(params=["asyncio", "uvloop"])
def event_loop_policy(request: pytest.FixtureRequest) -> asyncio.AbstractEventLoopPolicy:
    return uvloop.EventLoopPolicy() if request.param == "uvloop" else asyncio.DefaultEventLoopPolicy()


class OpenFile:
    def __init__(self, path: Path) -> None:
        self._fd = os.open(path, os.O_RDONLY)

    def fileno(self) -> int:
        return self._fd


class CountedRange:
    """A file range that says how often it was let go."""

    def __init__(self, path: Path, position: int, size_bytes: int) -> None:
        self.handle = OpenFile(path)
        self.position = position
        self.size_bytes = size_bytes
        self.release_count = 0

    def read(self) -> bytes:
        return os.pread(self.handle.fileno(), self.size_bytes, self.position)

    def release(self) -> None:
        self.release_count += 1
        os.close(self.handle.fileno())


class Peer:
    """One side of a connection, with what it got."""

    def __init__(self, stream: Stream) -> None:
        self.stream = stream
        self.received = bytearray()
        self.closed_count = 0
        self.drained_count = 0
        self.error: Exception | None = None
        stream.start(self.received.extend, self._on_close, self._on_drained)

    def _on_close(self, error: Exception | None) -> None:
        self.closed_count += 1
        self.error = error

    def _on_drained(self) -> None:
        self.drained_count += 1


async def until(is_so: Callable[[], bool]) -> None:
    async with asyncio.timeout(10):
        while not is_so():  # noqa: ASYNC110 - any condition, not one event
            await asyncio.sleep(0)


class Pair:
    def __init__(self) -> None:
        self.listener = SocketListener("127.0.0.1", 0, counters=NetCounters())

    async def open(self) -> None:
        stream, accepted = await asyncio.gather(SocketDialer().connect(*self.listener.address), self.listener.accept())
        self.client, self.server = Peer(stream), Peer(accepted)


@pytest.fixture
async def pair() -> AsyncIterator[Pair]:
    pair = Pair()
    await pair.open()
    yield pair
    pair.client.stream.abort()
    pair.server.stream.abort()
    pair.listener.close()


@pytest.fixture
def data_file(tmp_path: Path) -> Path:
    path = tmp_path / "segment.log"
    path.write_bytes(bytes(range(256)) * 32 * 1024)  # 8 MiB
    return path


async def test_parts_arrive_in_order_whatever_their_kind(pair: Pair, data_file: Path) -> None:
    small = CountedRange(data_file, 10, 100)
    large = CountedRange(data_file, 5, 3_000_000)
    pair.server.stream.send([b"head", memoryview(b"er"), small, large, bytearray(b"tail"), b""])
    expected_size = 4 + 2 + 100 + 3_000_000 + 4
    await until(lambda: len(pair.client.received) == expected_size)
    content = data_file.read_bytes()  # noqa: ASYNC240
    assert pair.client.received == b"header" + content[10:110] + content[5:3_000_005] + b"tail"
    assert (small.release_count, large.release_count) == (1, 1)
    assert pair.server.stream.write_buffer_bytes == 0


async def test_only_ranges_of_16_kib_and_more_go_by_sendfile(pair: Pair, data_file: Path) -> None:
    counters = pair.listener.counters
    pair.server.stream.send([CountedRange(data_file, 0, SENDFILE_BYTES_MIN - 1)])
    assert counters.sendfile_calls == 0
    pair.server.stream.send([CountedRange(data_file, 0, SENDFILE_BYTES_MIN)])
    await until(lambda: len(pair.client.received) == 2 * SENDFILE_BYTES_MIN - 1)
    assert counters.sendfile_bytes == SENDFILE_BYTES_MIN
    assert counters.bytes_out == 2 * SENDFILE_BYTES_MIN - 1


async def test_a_reader_that_does_not_read_shows_in_the_write_buffer(pair: Pair) -> None:
    pair.client.stream.pause()
    block = b"x" * 1_000_000
    while pair.server.stream.write_buffer_bytes < 5_000_000:
        pair.server.stream.send([block])
        await asyncio.sleep(0)
    pair.client.stream.resume()
    await until(lambda: pair.server.stream.write_buffer_bytes == 0)
    assert pair.server.drained_count == 1


async def test_abort_releases_what_still_waits_exactly_once(pair: Pair, data_file: Path) -> None:
    pair.client.stream.pause()
    ranges = [CountedRange(data_file, 0, 8 << 20) for _ in range(4)]
    pair.server.stream.send(ranges)
    pair.server.stream.abort()
    late = CountedRange(data_file, 0, 100)
    pair.server.stream.send([late])
    await until(lambda: pair.server.closed_count == 1)
    await until(lambda: all(each.release_count == 1 for each in [*ranges, late]))


async def test_close_writes_what_waits_first(pair: Pair, data_file: Path) -> None:
    pair.server.stream.send([CountedRange(data_file, 0, 8 << 20), b"end"])
    pair.server.stream.close()
    await until(lambda: pair.client.closed_count == 1)
    assert len(pair.client.received) == (8 << 20) + 3
    assert pair.client.error is None


async def test_a_file_that_became_shorter_closes_the_connection(pair: Pair, data_file: Path) -> None:
    cut = CountedRange(data_file, 0, 8 << 20)
    os.truncate(data_file, 100_000)
    pair.server.stream.send([b"length", cut, b"never sent"])
    await until(lambda: pair.client.closed_count == 1 and pair.server.closed_count == 1)
    assert isinstance(pair.server.error, ConnectionAbortedError)
    assert b"never sent" not in pair.client.received
    assert cut.release_count == 1


async def test_a_range_that_is_not_in_memory_is_read_by_a_thread_first(pair: Pair, data_file: Path) -> None:
    cold = CountedRange(data_file, 0, 8 << 20)
    os.fsync(cold.handle.fileno())
    os.posix_fadvise(cold.handle.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    if is_in_page_cache(cold.handle.fileno(), 0, 8 << 20):
        pytest.skip("this file system cannot tell, or keeps what it is told to drop")
    pair.server.stream.send([b"head", cold, b"tail"])
    await until(lambda: len(pair.client.received) == (8 << 20) + 8)
    assert pair.client.received[4:-4] == data_file.read_bytes()  # noqa: ASYNC240
    assert pair.listener.counters.cold_range_count > 0
    assert cold.release_count == 1


async def test_a_paused_stream_reads_nothing_until_it_is_resumed(pair: Pair) -> None:
    pair.server.stream.pause()
    pair.client.stream.send([b"first"])
    for _ in range(50):
        await asyncio.sleep(0)
    assert pair.server.received == b""
    pair.server.stream.resume()
    await until(lambda: pair.server.received == b"first")


async def test_nobody_there_is_an_os_error() -> None:
    listener = SocketListener("127.0.0.1", 0)
    address = listener.address
    listener.close()
    with pytest.raises(OSError, match=r"refused|Connect call failed"):
        await SocketDialer().connect(*address)


async def test_a_taken_port_is_an_os_error() -> None:
    first = SocketListener("127.0.0.1", 0)
    with pytest.raises(OSError, match="in use"):
        SocketListener(*first.address)
    first.close()
