"""A blocking client on a bare socket, for tests that want to say exactly what is on the wire.

with RawClient(broker.address()) as client:
    response = client.call(MetadataRequest(topics=None), version=12)
    client.send(b"\\x00\\x00\\x00\\x01x")        # any bytes
    assert client.is_closed_by_peer()
"""

from __future__ import annotations

import socket
import ssl
from types import TracebackType
from typing import Any, Self

from broker_engine.security.plain import encode_plain
from broker_engine.wire.framing import encode_request, parse_response
from broker_engine.wire.messages.sasl_authenticate import SaslAuthenticateRequest
from broker_engine.wire.messages.sasl_handshake import SaslHandshakeRequest
from broker_engine.wire.schema import Message

TIMEOUT_S = 20.0


class RawClient:
    def __init__(self, address: str, *, timeout_s: float = TIMEOUT_S, tls: ssl.SSLContext | None = None) -> None:
        host, _, port = address.rpartition(":")
        self._socket = socket.create_connection((host, int(port)), timeout=timeout_s)
        if tls is not None:
            self._socket = tls.wrap_socket(self._socket, server_hostname="localhost")
        self._correlation_id = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._socket.close()

    def sign_in(self, username: str, password: str, authorization_id: str | None = None) -> Any:
        self.call(SaslHandshakeRequest(mechanism="PLAIN"), 1)
        return self.call(SaslAuthenticateRequest(auth_bytes=encode_plain(username, password, authorization_id)), 2)

    def call(self, request: Message, version: int) -> Any:
        self.send_request(request, version)
        return self.receive(request, version)

    def send_request(self, request: Message, version: int) -> int:
        self._correlation_id += 1
        parts = encode_request(self._correlation_id, "raw", request, version)
        self.send_frame(b"".join(bytes(part) for part in parts))  # type: ignore[arg-type]
        return self._correlation_id

    def receive(self, request: Message, version: int) -> Any:
        frame = self.receive_frame()
        assert frame is not None, "the broker closed the connection"
        return parse_response(frame, request.API, version)[1]

    def send_frame(self, body: bytes) -> None:
        self.send(len(body).to_bytes(4, "big") + body)

    def send(self, data: bytes) -> None:
        self._socket.sendall(data)

    def receive_frame(self) -> bytes | None:
        """The next frame without its length; None if the connection ended."""
        head = self._receive(4)
        return None if head is None else self._receive(int.from_bytes(head, "big"))

    def is_closed_by_peer(self) -> bool:
        try:
            return self._socket.recv(1) == b""
        except ConnectionResetError:
            return True

    def is_open(self, wait_s: float = 0.2) -> bool:
        """Nothing came and nobody hung up for this long."""
        self._socket.settimeout(wait_s)
        try:
            return self._socket.recv(1) != b""
        except TimeoutError:
            return True
        except ConnectionResetError:
            return False
        finally:
            self._socket.settimeout(TIMEOUT_S)

    def _receive(self, size: int) -> bytes | None:
        data = b""
        while len(data) < size:
            try:
                piece = self._socket.recv(size - len(data))
            except ConnectionResetError:
                return None
            if not piece:
                return None
            data += piece
        return data
