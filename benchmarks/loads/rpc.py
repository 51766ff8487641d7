"""One blocking request at a time on our own codec: for questions before and after a timed part, never inside."""

from __future__ import annotations

import socket
import ssl
import struct
import time
from types import TracebackType

from broker_engine.errors import ErrorCode
from broker_engine.wire.framing import encode_request, frame, parse_response
from broker_engine.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from broker_engine.wire.schema import Message

TIMEOUT_S = 120.0


class Connection:
    def __init__(self, port: int, *, is_tls: bool = False) -> None:
        plain = socket.create_connection(("127.0.0.1", port), timeout=TIMEOUT_S)
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._buffer = bytearray(1 << 16)
        self.socket = _without_checks().wrap_socket(plain) if is_tls else plain

    def __enter__(self) -> Connection:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        self.socket.close()

    def call(self, request: Message, version: int) -> Message:
        self.socket.sendall(request_frame(request, version))
        return parse_response(self.read_frame(), request.API, version)[1]

    def read_frame(self) -> memoryview:
        """Good until the next call: one buffer serves all answers."""
        (length,) = struct.unpack(">i", self._read(4))
        if length > len(self._buffer):
            self._buffer = bytearray(length)
        return self._read(length)

    def _read(self, size_bytes: int) -> memoryview:
        view, filled = memoryview(self._buffer)[:size_bytes], 0
        while filled < size_bytes:
            count = self.socket.recv_into(view[filled:])
            if count == 0:
                raise ConnectionResetError("the broker closed the connection")
            filled += count
        return view


def _without_checks() -> ssl.SSLContext:
    """Both brokers get a certificate that nobody signed."""
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


def request_frame(request: Message, version: int) -> bytes:
    parts = frame(encode_request(1, "bench", request, version))
    return b"".join(part for part in parts if isinstance(part, bytes | memoryview))


def new_producer_id(port: int) -> tuple[int, int]:
    """Id and epoch. Kafka's first one comes only after it got a block of them from its controller."""
    request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=60_000)
    deadline = time.monotonic() + TIMEOUT_S
    with Connection(port) as connection:
        while True:
            answer = connection.call(request, version=2)
            assert isinstance(answer, InitProducerIdResponse)
            if answer.error_code == 0:
                return answer.producer_id, answer.producer_epoch
            is_late = time.monotonic() > deadline
            if is_late or answer.error_code != ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
                raise RuntimeError(f"InitProducerId answered {answer.error_code}")
            time.sleep(0.05)
