"""Pipelined produce requests over plain sockets: prebuilt frames out, error codes in, nothing else.

One thread with a selector drives all connections; up to 5 requests wait on each, as Kafka's clients have it.
"""

from __future__ import annotations

import itertools
import selectors
import socket
import struct
import time
from collections.abc import Iterator, Sequence

from benchmarks.loads.frames import PRODUCE_VERSION, batch_of, idempotent_frames, keyed_batch, produce_frame
from benchmarks.loads.result import Timed
from benchmarks.loads.rpc import new_producer_id
from benchmarks.process import usage
from broker_engine.wire.framing import parse_response
from broker_engine.wire.messages.produce import ProduceRequest, ProduceResponse

IN_FLIGHT_MAX = 5
RECEIVE_BYTES = 1 << 16
STALL_TIMEOUT_S = 120.0
_LENGTH = struct.Struct(">i")
Frame = bytes | memoryview


class PipelinedConnection:
    """One socket, a supply of frames, and how many answers are still to come."""

    def __init__(self, port: int, frames: Iterator[Frame]) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.socket.setblocking(False)
        self._frames = frames
        self._sending: memoryview | None = None
        self._received = bytearray()
        self.in_flight_count = 0

    def send(self) -> bool:
        """Fill the pipe. True while bytes wait for the socket."""
        while self._sending is not None or self._next_frame():
            assert self._sending is not None
            try:
                count = self.socket.send(self._sending)
            except BlockingIOError:
                return True
            self._sending = self._sending[count:] if count < len(self._sending) else None
        return False

    def _next_frame(self) -> bool:
        if self.in_flight_count >= IN_FLIGHT_MAX:
            return False
        frame = next(self._frames, None)
        if frame is None:
            return False
        self._sending = memoryview(frame)
        self.in_flight_count += 1
        return True

    def receive(self) -> int:
        """How many answers came; each is checked."""
        data = self.socket.recv(RECEIVE_BYTES)
        if not data:
            raise ConnectionResetError("the broker closed the connection")
        self._received += data
        count = position = 0
        while len(self._received) - position >= 4:
            end = position + 4 + _LENGTH.unpack_from(self._received, position)[0]
            if end > len(self._received):
                break
            check_answer(bytes(self._received[position + 4 : end]))
            position, count = end, count + 1
        del self._received[:position]
        self.in_flight_count -= count
        return count


_good_tails: set[tuple[int, bytes]] = set()


def check_answer(answer: bytes) -> None:
    """An answer whose names and error codes (the 16 bytes before its offset, if it is short) were good once is good."""
    key = (len(answer), answer[4:-33]) if len(answer) < 128 else None
    if key in _good_tails:
        return
    response = parse_response(answer, ProduceRequest.API, PRODUCE_VERSION)[1]
    assert isinstance(response, ProduceResponse)
    errors = {part.error_code for topic in response.responses for part in topic.partition_responses}
    assert errors == {0}, f"produce answered {errors}"
    if key is not None:
        _good_tails.add(key)


def drive(pid: int, connections: Sequence[PipelinedConnection], request_bytes: int, warm_up: int, count: int) -> Timed:
    """Run until `warm_up + count` answers are in; the first `warm_up` are not timed."""
    total, done = warm_up + count, 0
    before, started = usage(pid), time.perf_counter()
    with selectors.DefaultSelector() as selector:
        for connection in connections:
            selector.register(connection.socket, _interest(connection), connection)
        while done < total:
            was_warm, done = done >= warm_up, done + _turn(selector)
            if not was_warm and done >= warm_up:
                warm_up, before, started = done, usage(pid), time.perf_counter()
        elapsed_s, after = time.perf_counter() - started, usage(pid)
    for connection in connections:
        connection.socket.close()
    timed_count = done - warm_up
    return Timed(elapsed_s, timed_count * request_bytes, timed_count, after - before)


def _turn(selector: selectors.BaseSelector) -> int:
    answered, ready = 0, selector.select(STALL_TIMEOUT_S)
    if not ready:
        raise TimeoutError(f"no answer within {STALL_TIMEOUT_S:.0f} s")
    for key, events in ready:
        if events & selectors.EVENT_READ:
            answered += key.data.receive()
        wanted = _interest(key.data)
        if wanted != key.events:
            selector.modify(key.fileobj, wanted, key.data)
    return answered


def _interest(connection: PipelinedConnection) -> int:
    return selectors.EVENT_READ | (selectors.EVENT_WRITE if connection.send() else 0)


def one_record_requests(
    port: int,
    pid: int,
    topic: str,
    *,
    connection_count: int,
    partition_count: int,
    record_bytes: int,
    request_count: int,
    is_idempotent: bool = True,
) -> Timed:
    """`acks=all`, one record a request; connection i writes to partition i modulo `partition_count`."""
    each = request_count // connection_count
    connections, request_bytes = [], 0
    for number in range(connection_count):
        producer = new_producer_id(port) if is_idempotent else (-1, -1)
        frames = idempotent_frames(topic, number % partition_count, each, record_bytes, producer)
        request_bytes = len(frames[0])
        connections.append(PipelinedConnection(port, iter(frames)))
    total = each * connection_count
    return drive(pid, connections, request_bytes, warm_up=total // 5, count=total - total // 5)


def keyed_batches(port: int, pid: int, topic: str, *, total_bytes: int) -> Timed:
    """100-byte records under 90 keys, in batches of about 10 KB: nearly all of them replaced by later ones."""
    frame = produce_frame(topic, {0: keyed_batch(record_count=90, record_bytes=100)}, acks=1)
    count = total_bytes // len(frame)
    return drive(pid, [PipelinedConnection(port, iter([frame] * count))], len(frame), 0, count)


def large_batches(
    port: int,
    pid: int,
    topic: str,
    *,
    connection_count: int,
    partition_count: int,
    batch_bytes: int,
    total_bytes: int,
    partitions_per_request: int = 1,
    acks: int = 1,
) -> Timed:
    """Batches of `batch_bytes` (1 KB records), walking all partitions again and again, several in a request."""
    batch = batch_of(batch_bytes)
    groups = [
        range(first, min(first + partitions_per_request, partition_count))
        for first in range(0, partition_count, partitions_per_request)
    ]
    frames = [produce_frame(topic, dict.fromkeys(group, batch), acks) for group in groups]
    count = max(2 * connection_count * IN_FLIGHT_MAX, total_bytes // len(frames[0]))
    warm_up = count // 5
    supply = itertools.islice(itertools.cycle(frames), warm_up + count)  # shared: together they walk all partitions
    connections = [PipelinedConnection(port, supply) for _ in range(connection_count)]
    return drive(pid, connections, len(frames[0]), warm_up, count)
