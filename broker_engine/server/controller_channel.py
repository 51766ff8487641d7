"""How a broker reaches the controller, whoever that is at the moment: by a connection, or in this very process.

Asks again after a broken connection and after NOT_CONTROLLER, until the time is up. So a request may be carried out
twice; whoever asks has to be able to live with that (registration and AlterPartition compare epochs first).
"""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Callable, Mapping
from typing import TypeVar, cast

from broker_engine.client.errors import ConnectionFailed
from broker_engine.clock import Clock
from broker_engine.errors import BrokerError, ErrorCode
from broker_engine.handlers.api import AnyApi, Call, Reply
from broker_engine.server.peers import Peers
from broker_engine.wire.schema import Message

log = logging.getLogger(__name__)

RETRY_PAUSE_S = 0.02
_LOOK_AGAIN_S = 0.1
_LOG_AGAIN_MS = 5_000

R = TypeVar("R", bound=Message)


class ControllerChannel:
    def __init__(
        self,
        *,
        node_id: int,
        clock: Clock,
        peers: Peers,
        find_leader: Callable[[], int | None],
        apis: Mapping[int, AnyApi],
        make_call: Callable[[int], Call],
    ) -> None:
        """`make_call` gives the call of this node to itself, for a version."""
        self._node_id = node_id
        self._clock = clock
        self._peers = peers
        self._find_leader = find_leader
        self._apis = apis
        self._make_call = make_call

    async def wait_for_leader(self) -> None:
        """However long it takes: without a quorum there is nobody to ask, and nothing to give up for."""
        waited_from_ms = logged_ms = self._clock.monotonic_ms()
        while self._find_leader() is None:
            await asyncio.sleep(RETRY_PAUSE_S)
            now_ms = self._clock.monotonic_ms()
            if now_ms - logged_ms >= _LOG_AGAIN_MS:
                logged_ms = now_ms
                waited_s = (now_ms - waited_from_ms) // 1000
                log.info("no leader of the metadata quorum since %d s: are enough nodes up?", waited_s)

    async def ask(
        self,
        message: Message,
        answer: type[R],
        *,
        timeout_ms: int,
        lane: str = "control",
        attempt_timeout_ms: int | None = None,
    ) -> R:
        """The controller's answer; ConnectionFailed where no controller gave one in time.

        `attempt_timeout_ms`: then it is asked again, by a new connection: nobody may be at the other end of this one.
        """
        deadline_ms = self._clock.monotonic_ms() + timeout_ms
        reason = "no controller is known"
        while True:
            try:
                left_ms = max(1, deadline_ms - self._clock.monotonic_ms())
                wait_ms = left_ms if attempt_timeout_ms is None else min(left_ms, attempt_timeout_ms)
                result = await self._ask_leader(message, answer, wait_ms, lane)
                if result is not None and not _is_misdirected(result):
                    return result
            except ConnectionFailed as error:
                reason = error.message
            if self._clock.monotonic_ms() >= deadline_ms:
                raise ConnectionFailed("the controller", reason)
            await asyncio.sleep(RETRY_PAUSE_S)

    async def _ask_leader(self, message: Message, answer: type[R], timeout_ms: int, lane: str) -> R | None:
        leader_id = self._find_leader()
        if leader_id is None:
            return None
        if leader_id == self._node_id:
            return await self._ask_here(message, answer)
        asking = asyncio.ensure_future(self._peers.ask(leader_id, message, answer, lane=lane, timeout_ms=timeout_ms))
        try:
            return await self._while_it_leads(leader_id, asking)
        finally:
            asking.cancel()

    async def _while_it_leads(self, leader_id: int, asking: asyncio.Future[R]) -> R | None:
        """A leader that fell silent is not waited for once there is another one."""
        while True:
            done, _ = await asyncio.wait([asking], timeout=_LOOK_AGAIN_S)
            if done:
                return asking.result()
            if self._find_leader() not in (None, leader_id):
                return None

    async def _ask_here(self, message: Message, answer: type[R]) -> R:
        api = self._apis[message.API.key]
        try:
            result = api.handle(message, self._make_call(api.spec.max_version))
            if inspect.isawaitable(result):
                result = await result
        except BrokerError as error:
            result = api.refuse(message, error)
        response = result.response if isinstance(result, Reply) else result
        assert isinstance(response, answer), f"{message.API.name} was answered by {type(response).__name__}"
        return response


def _is_misdirected(answer: Message) -> bool:
    """It does not lead, or it led once and has only just started again (session.py)."""
    code = cast(int, getattr(answer, "error_code", 0))
    return code in (ErrorCode.NOT_CONTROLLER, ErrorCode.BROKER_NOT_AVAILABLE)
