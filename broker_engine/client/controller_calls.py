"""Calls that the controller carries out. Any broker passes them on to it; the controller itself saves the way."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

from broker_engine.client.client import Client
from broker_engine.client.connection import Connection
from broker_engine.client.errors import ConnectionFailed
from broker_engine.errors import ErrorCode
from broker_engine.wire.schema import Message

R = TypeVar("R", bound=Message)


class ControllerCalls:
    """Asks the controller where there is one to name, and again when it has moved."""

    def __init__(self, client: Client) -> None:
        self._client = client

    def _timeout_ms(self, timeout_ms: int | None) -> int:
        return self._client.config.request_timeout_ms if timeout_ms is None else timeout_ms

    async def _ask_node(self, node: int | None, request: Message, answer: type[R]) -> R:
        if node is None:
            return await self._client.ask_any(request, answer)
        return await self._client.ask(node, request, answer)

    async def _ask_controller(self, request: Message, answer: type[R], codes: Callable[[R], Iterable[int]]) -> R:
        response: R | None = None
        async for _ in self._client.attempts():
            connection = await self._controller_connection()
            response = await connection.ask(request, answer)
            if ErrorCode.NOT_CONTROLLER not in codes(response):
                return response
            await self._client.refresh_brokers()
        assert response is not None, "there is always one attempt"
        return response

    async def _controller_connection(self) -> Connection:
        """To the controller as last seen, or to whomever answers where that one is gone: nothing was sent yet."""
        metadata, links = self._client.metadata, self._client.links
        address = metadata.brokers.get(metadata.controller_id)
        if address is not None:
            try:
                return await links.link(address).get()
            except ConnectionFailed:
                pass  # it has just died: the next one is being elected, and every broker will know it
        return await links.any_connection(metadata.brokers.values())
