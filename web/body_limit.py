"""Refuses a body that is too large while it arrives. Django would first write all of it to the disk, however long."""

from __future__ import annotations

import json

from api.gateway.produce_body import BODY_BYTES_MAX
from web.asgi_types import AsgiApp, Message, Receive, Scope, Send, header


class BodyLimit:
    """Beyond the largest body that any view takes: 413, and the connection is closed."""

    def __init__(self, app: AsgiApp, bytes_max: int = BODY_BYTES_MAX) -> None:
        self._app = app
        self._bytes_max = bytes_max

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        declared = header(scope, b"content-length")
        if declared is not None and (not declared.isdecimal() or int(declared[:20]) > self._bytes_max):
            await _refuse(send, self._bytes_max)
            return
        guard = _Guard(receive, send, self._bytes_max)
        await self._app(scope, guard.receive, guard.send)


class _Guard:
    def __init__(self, receive: Receive, send: Send, bytes_max: int) -> None:
        self._receive = receive
        self._send = send
        self._bytes_max = bytes_max
        self._bytes_seen = 0
        self._is_refused = False

    async def receive(self) -> Message:
        message = await self._receive()
        if message["type"] == "http.request":
            self._bytes_seen += len(message.get("body", b""))
            if self._bytes_seen > self._bytes_max and not self._is_refused:
                self._is_refused = True
                await _refuse(self._send, self._bytes_max)
                return {"type": "http.disconnect"}
        return message

    async def send(self, message: Message) -> None:
        if not self._is_refused:
            await self._send(message)


async def _refuse(send: Send, bytes_max: int) -> None:
    text = f"a request body holds at most {bytes_max} bytes"
    problem = {"type": "about:blank", "title": "Payload too large", "status": 413, "detail": text}
    body = json.dumps({**problem, "error_code": 41301, "message": text}).encode()
    headers = [(b"content-type", b"application/problem+json"), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": 413, "headers": [*headers, (b"connection", b"close")]})
    await send({"type": "http.response.body", "body": body})
