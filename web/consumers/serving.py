"""The work behind a subscription: runs as a task of its socket, turns errors into error frames."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING

from api.gateway import runtime
from api.gateway.engine_problems import problem_of_engine_error
from api.gateway.pool import PoolFull
from broker_engine.client import KafkaError
from web.consumers.frames import Frame, Subscribe
from web.consumers.protocol import Credit
from web.consumers.reader import Reader

if TYPE_CHECKING:
    from web.consumers.socket import GatewaySocket

log = logging.getLogger(__name__)


class SubscriptionPort:
    """What a reader may do with its socket."""

    def __init__(self, socket: GatewaySocket, sub: str) -> None:
        self._socket = socket
        self._sub = sub

    def credit(self) -> Credit:
        return self._socket.session.credit_of(self._sub)

    async def wait_for_credit(self) -> None:
        await self._socket.wait_for_credit(self._sub)

    async def subscribed(self, positions: Mapping[int, int], high_watermarks: Mapping[int, int]) -> None:
        await self._socket.perform(self._socket.session.on_subscribed(self._sub, positions, high_watermarks))

    async def records(self, batch: list[Frame], size_bytes: int, high_watermarks: Mapping[int, int]) -> None:
        await self._socket.perform(self._socket.session.on_records(self._sub, batch, size_bytes, high_watermarks))

    async def caught_up(self) -> None:
        await self._socket.perform(self._socket.session.on_caught_up(self._sub))


async def serve_subscription(socket: GatewaySocket, sub: str, request: Subscribe) -> None:
    assert socket.caller is not None, "only an open session subscribes"
    tenant, principal = str(socket.caller.tenant.pk), socket.caller.principal
    try:
        async with runtime.pool().lease(tenant, principal) as own:
            await Reader(own.client, request, SubscriptionPort(socket, sub)).run()
    except (KafkaError, PoolFull) as error:
        await _fail(socket, sub, request.topic, error)
    except Exception:
        log.exception("a subscription broke")
        effects = socket.session.on_failure(sub, "internal_error", "something broke on our side", retryable=True)
        await socket.perform(effects)


async def _fail(socket: GatewaySocket, sub: str, topic: str, error: KafkaError | PoolFull) -> None:
    if isinstance(error, PoolFull):
        code, message, is_retryable = "busy", "the gateway serves as many callers as it can", True
    else:
        problem = problem_of_engine_error(error, topic)
        code, message, is_retryable = problem.slug.replace("-", "_"), problem.detail, problem.status == 503
    await socket.perform(socket.session.on_failure(sub, code, message, retryable=is_retryable))
