"""The broker that coordinates one group or one transactional id: found, asked, and found again when it has moved."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from enum import IntEnum
from typing import TypeVar

from broker_engine.client.client import Client
from broker_engine.client.config import BrokerAddress
from broker_engine.client.connection import Connection
from broker_engine.client.errors import KafkaError, RequestTimedOut, error_for, known_code
from broker_engine.errors import ErrorCode
from broker_engine.wire.messages.find_coordinator import API as FIND_COORDINATOR
from broker_engine.wire.messages.find_coordinator import Coordinator as FoundCoordinator
from broker_engine.wire.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from broker_engine.wire.schema import Message

R = TypeVar("R", bound=Message)

_FIRST_VERSION_WITH_SEVERAL = 4
_CONCURRENT_BACKOFF_MS = 20
"""The last transaction's markers are being written: that takes a moment, mostly. Doubled from try to try."""

_MOVED = frozenset({ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.NOT_COORDINATOR})
PASSING = _MOVED | {
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.CONCURRENT_TRANSACTIONS,
    ErrorCode.REQUEST_TIMED_OUT,
    ErrorCode.NETWORK_EXCEPTION,
}
"""The same question may have another answer a moment later, maybe elsewhere."""


class CoordinatorKind(IntEnum):
    GROUP = 0
    TRANSACTION = 1


class Coordinator:
    def __init__(self, client: Client, kind: CoordinatorKind, key: str) -> None:
        self._client = client
        self._kind = kind
        self._key = key
        self._address: BrokerAddress | None = None

    def on_error(self, code: ErrorCode) -> None:
        """Look for it again where an answer, or none, shows that it is not there any more."""
        if code in _MOVED or code in (ErrorCode.NETWORK_EXCEPTION, ErrorCode.REQUEST_TIMED_OUT):
            self._address = None

    async def address(self) -> BrokerAddress:
        """One attempt to find it, unless it is known."""
        if self._address is None:
            found = await self._find()
            if found.error_code != ErrorCode.NONE:
                raise error_for(found.error_code, found.error_message, f"the coordinator of {self._key!r}")
            self._address = BrokerAddress(found.host, found.port)
        return self._address

    async def _find(self) -> FoundCoordinator:
        connection = await self._client.links.any_connection(self._client.metadata.brokers.values())
        if connection.version_of(FIND_COORDINATOR) >= _FIRST_VERSION_WITH_SEVERAL:
            request = FindCoordinatorRequest(key_type=self._kind, coordinator_keys=[self._key])
            return (await connection.ask(request, FindCoordinatorResponse)).coordinators[0]
        request = FindCoordinatorRequest(key_type=self._kind, key=self._key)
        answer = await connection.ask(request, FindCoordinatorResponse)
        return FoundCoordinator(
            host=answer.host, port=answer.port, error_code=answer.error_code, error_message=answer.error_message
        )

    async def connection(self) -> Connection:
        """The connection to it that all share. A question that waits for others wants one of its own."""
        return await self._client.links.link(await self.address()).get()

    async def ask(
        self,
        request: Message,
        answer: type[R],
        codes: Callable[[R], Iterable[int]],
        *,
        at_most: int | None = None,
        passing: Iterable[ErrorCode] = (),
    ) -> R:
        """Ask until none of the answer's codes is one that passes, for `request_timeout_ms`.

        The request may arrive more than once. After that time the last error is raised; any other answer is returned
        for the caller to judge. `at_most` bounds the version, `passing` names further codes that pass.
        """
        clock, failure_count = self._client.clock, 0
        give_up_ms = clock.monotonic_ms() + self._client.config.request_timeout_ms
        repeated = PASSING.union(passing)
        while True:
            error = await self._try(request, answer, codes, at_most, repeated)
            if not isinstance(error, KafkaError):
                return error
            failure_count += 1
            if clock.monotonic_ms() >= give_up_ms:
                raise error
            await asyncio.sleep(self._pause_ms(error.code, failure_count) / 1000)

    async def _try(
        self,
        request: Message,
        answer: type[R],
        codes: Callable[[R], Iterable[int]],
        at_most: int | None,
        repeated: frozenset[ErrorCode],
    ) -> R | KafkaError:
        try:
            connection = await self.connection()
            version = connection.version_of(request.API, at_most=at_most)
            response = await connection.ask(request, answer, version=version)
        except KafkaError as error:
            self.on_error(error.code)
            if error.code not in repeated and not isinstance(error, RequestTimedOut):
                raise
            return error
        for code in map(known_code, codes(response)):
            if code in repeated:
                self.on_error(code)
                return KafkaError(code, f"{request.API.name} for {self._key!r}")
        return response

    def _pause_ms(self, code: ErrorCode, failure_count: int) -> int:
        if code == ErrorCode.CONCURRENT_TRANSACTIONS:
            return min(_CONCURRENT_BACKOFF_MS << min(failure_count - 1, 10), self._client.config.retry_backoff_ms_max)
        return self._client.retry_backoff_ms(failure_count)
