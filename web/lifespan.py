"""ASGI lifespan: what the process shares is started before the first request and stopped after the last one."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable

from web.asgi_types import Receive, Scope, Send

log = logging.getLogger(__name__)

Hook = Callable[[], Awaitable[None]]


class Lifespan:
    """Hooks run in order at the start, in reverse at the end. One that fails to stop does not keep the others up."""

    def __init__(self, *, on_start: list[Hook], on_stop: list[Hook]) -> None:
        self._on_start = on_start
        self._on_stop = on_stop

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        while True:
            message = await receive()
            if message["type"] == "lifespan.startup":
                await self._start(send)
            elif message["type"] == "lifespan.shutdown":
                await self._stop()
                await send({"type": "lifespan.shutdown.complete"})
                return

    async def _start(self, send: Send) -> None:
        try:
            for hook in self._on_start:
                await hook()
        except Exception as error:
            log.exception("the server cannot start")
            await send({"type": "lifespan.startup.failed", "message": str(error)})
            return
        await send({"type": "lifespan.startup.complete"})

    async def _stop(self) -> None:
        for hook in reversed(self._on_stop):
            try:
                await hook()
            except Exception:
                log.exception("a part of the server did not stop cleanly")
