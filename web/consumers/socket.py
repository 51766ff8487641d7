"""The WebSocket consumer: carries out what the protocol decides. One per socket, on the event loop of the clients.

Who may connect: an API key in the Authorization header, or a browser of our own origin, which then shows a ticket in
hello (origin.py has refused all others before this).
"""

from __future__ import annotations

import asyncio
import io
import json
import secrets
from collections.abc import Coroutine
from typing import Any

from asgiref.sync import sync_to_async
from channels.generic.websocket import AsyncWebsocketConsumer
from django.core.handlers.asgi import ASGIRequest

from api.authentication import Caller, authenticate_request
from api.gateway import tickets
from api.problems import ProblemError
from web.asgi_types import header
from web.consumers.frames import Frame
from web.consumers.protocol import (
    HELLO_WITHIN_S,
    CheckTicket,
    Close,
    CloseCode,
    CreditAdded,
    Effect,
    Send,
    Session,
    StartReading,
    StartWatching,
    Stop,
)
from web.consumers.serving import serve_subscription
from web.consumers.watching import serve_any_watch
from web.draining import open_sockets

SUBPROTOCOL = "highwater.v1.json"
RIGHTS_CHECKED_EVERY_S = 60.0
CLOSE_REASON_BYTES_MAX = 123  # RFC 6455: control frames are short


class GatewaySocket(AsyncWebsocketConsumer):
    channel_layer_alias = "none"  # nothing is sent between sockets, so no queue (and no Redis connection) for each

    session: Session
    caller: Caller | None

    async def connect(self) -> None:
        self._is_gone = False
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._credit_added: dict[str, asyncio.Event] = {}
        offered = self.scope["subprotocols"]
        if (offered and SUBPROTOCOL not in offered) or open_sockets.is_draining:
            await self.close()
            return
        await self.accept(SUBPROTOCOL if offered else None)
        await self._begin()

    async def _begin(self) -> None:
        has_key = header(self.scope, b"authorization") is not None
        self.caller = await sync_to_async(_caller_by_key)(dict(self.scope)) if has_key else None
        self.session = Session(secrets.token_hex(8), is_authenticated=self.caller is not None)
        open_sockets.add(self.drain)
        if has_key and self.caller is None:
            await self.close(CloseCode.NOT_AUTHENTICATED, "the API key or its secret is wrong")
            return
        self._spawn("hello", self._expect_hello())
        self._spawn("rights", self._check_rights())

    async def receive(self, text_data: str | None = None, bytes_data: bytes | None = None) -> None:
        if text_data is None:
            await self.perform(self.session.on_bytes())
        else:
            await self.perform(self.session.on_text(text_data))

    async def disconnect(self, code: int) -> None:
        self._is_gone = True
        open_sockets.remove(self.drain)
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def drain(self) -> None:
        await self.perform(self.session.on_drain())

    async def perform(self, effects: list[Effect]) -> None:
        for effect in effects:
            await self._perform(effect)

    async def _perform(self, effect: Effect) -> None:
        match effect:
            case Send(frame):
                await self._send_unless_gone(frame)
            case Close(code, reason):
                await self.close(code, reason.encode()[:CLOSE_REASON_BYTES_MAX].decode(errors="ignore"))
            case CheckTicket(ticket):
                self.caller = await sync_to_async(tickets.redeem)(ticket)
                await self.perform(self.session.on_ticket(self.caller is not None))
            case StartReading(sub, request):
                self._credit_added[sub] = asyncio.Event()
                self._spawn(sub, serve_subscription(self, sub, request))
            case StartWatching(sub, request):
                self._spawn(sub, serve_any_watch(self, sub, request))
            case Stop(sub):
                self._end(sub)
            case CreditAdded(sub):
                self._credit_added[sub].set()

    async def _send_unless_gone(self, frame: Frame) -> None:
        if self._is_gone:
            return
        try:
            await self.send(json.dumps(frame, ensure_ascii=False, separators=(",", ":")))
        except OSError:  # the peer went while we wrote; `disconnect` follows and ends everything
            self._is_gone = True

    async def wait_for_credit(self, sub: str) -> None:
        while not self.session.credit_of(sub).is_open:
            added = self._credit_added[sub]
            added.clear()
            await added.wait()

    def _spawn(self, name: str, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work, name=f"socket {name}")
        self._tasks[name] = task
        task.add_done_callback(lambda _: self._tasks.pop(name, None))

    def _end(self, sub: str) -> None:
        self._credit_added.pop(sub, None)
        task = self._tasks.pop(sub, None)
        # A server that reports its own failure is about to end by itself.
        if task is not None and task is not asyncio.current_task():
            task.cancel()

    async def _expect_hello(self) -> None:
        await asyncio.sleep(HELLO_WITHIN_S)
        await self.perform(self.session.on_hello_missing())

    async def _check_rights(self) -> None:
        """A revoked key or a lost membership ends the socket within a minute."""
        while True:
            await asyncio.sleep(RIGHTS_CHECKED_EVERY_S)
            if self.caller is None:
                continue
            holder = tickets.holder_of(self.caller)
            if await sync_to_async(tickets.still_allowed)(holder) is None:
                await self.perform(self.session.on_rights_lost())
                return


def _caller_by_key(scope: dict[str, Any]) -> Caller | None:
    request = ASGIRequest({**scope, "type": "http", "method": "GET"}, io.BytesIO())
    try:
        return authenticate_request(request)
    except ProblemError:
        return None
