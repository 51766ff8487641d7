"""One connection to one broker: requests go out at once, answers come back in order.

`send` never waits, so requests are pipelined; how many may be under way is the caller's rule (the producer allows 5).
A request that is not answered in time closes the connection: those behind it could not be answered either.
Left out: re-authentication (KIP-368); a broker with `connections.max.reauth.ms` closes, and the next call dials again.
"""

from __future__ import annotations

import asyncio
import ssl
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar, cast

from broker_engine.client.config import BrokerAddress
from broker_engine.client.errors import ConnectionFailed, KafkaError, RequestTimedOut, UnsupportedVersion
from broker_engine.client.frames import FrameReader, FrameTooLarge
from broker_engine.errors import ErrorCode
from broker_engine.net.stream import Part, Stream
from broker_engine.wire.api import API_VERSIONS_KEY, ApiSpec
from broker_engine.wire.errors import WireError
from broker_engine.wire.framing import correlation_id_of, encode_request, frame, parse_response
from broker_engine.wire.schema import Message

R = TypeVar("R", bound=Message)

_CORRELATION_ID_MASK = 0x7FFFFFFF


@dataclass(slots=True)
class _Pending:
    correlation_id: int
    spec: ApiSpec
    version: int
    future: asyncio.Future[Message]
    timer: asyncio.TimerHandle


class Connection:
    """Made by `handshake.open_connection`. Belongs to the loop that made it."""

    def __init__(
        self,
        stream: Stream,
        address: BrokerAddress,
        *,
        client_id: str,
        request_timeout_ms: int,
        response_bytes_max: int,
    ) -> None:
        self.address = address
        self.versions: dict[int, tuple[int, int]] = {}
        self.finalized_features: dict[str, int] = {}
        """Levels by name, as they were when the connection was made."""
        self.on_closed: Callable[[], None] | None = None
        self._loop = asyncio.get_running_loop()
        self._stream = stream
        self._client_id = client_id
        self._request_timeout_ms = request_timeout_ms
        self._frames = FrameReader(response_bytes_max)
        self._pending: deque[_Pending] = deque()
        self._next_correlation_id = 0
        self._is_open = True
        self._closed: asyncio.Future[None] = self._loop.create_future()
        stream.start(self._on_bytes, self._on_stream_closed)

    @property
    def is_open(self) -> bool:
        return self._is_open and not self._stream.is_closed

    @property
    def in_flight_count(self) -> int:
        return len(self._pending)

    def version_of(self, spec: ApiSpec, *, at_most: int | None = None) -> int:
        """The newest version that both sides speak."""
        first, last = self.versions.get(spec.key, (0, -1))
        version = min(last, spec.max_version if at_most is None else min(at_most, spec.max_version))
        if version < max(first, spec.min_version):
            raise UnsupportedVersion(_unsupported(spec, self.address, first, last))
        return version

    def has_api(self, spec: ApiSpec) -> bool:
        first, last = self.versions.get(spec.key, (0, -1))
        return min(last, spec.max_version) >= max(first, spec.min_version)

    def send(
        self, message: Message, *, version: int | None = None, timeout_ms: int | None = None
    ) -> asyncio.Future[Message]:
        """Write the request now; the future gets the answer, a ConnectionFailed or a RequestTimedOut."""
        version = self.version_of(message.API) if version is None else version
        future: asyncio.Future[Message] = self._loop.create_future()
        if not self.is_open:
            future.set_exception(ConnectionFailed(str(self.address), "the connection is closed"))
            return future
        wait_ms = self._request_timeout_ms if timeout_ms is None else timeout_ms
        correlation_id = self._write(message, version)
        pending = _Pending(
            correlation_id,
            message.API,
            version,
            future,
            self._loop.call_later(wait_ms / 1000, self._on_timeout, message.API.name, wait_ms, future),
        )
        self._pending.append(pending)
        return future

    def send_unanswered(self, message: Message, *, version: int) -> None:
        """For Produce with acks=0, the one request that a broker never answers."""
        if not self.is_open:
            raise ConnectionFailed(str(self.address), "the connection is closed")
        self._write(message, version)

    def _write(self, message: Message, version: int) -> int:
        correlation_id = self._next_correlation_id
        self._next_correlation_id = (correlation_id + 1) & _CORRELATION_ID_MASK
        parts = frame(encode_request(correlation_id, self._client_id, message, version))
        self._stream.send(cast(list[Part], parts))  # a client sends bytes and views only, never ranges of files
        return correlation_id

    async def ask(
        self, message: Message, answer: type[R], *, version: int | None = None, timeout_ms: int | None = None
    ) -> R:
        response = await self.send(message, version=version, timeout_ms=timeout_ms)
        assert isinstance(response, answer), f"{message.API.name} was answered by {type(response).__name__}"
        return response

    def close(self) -> None:
        self._fail(ConnectionFailed(str(self.address), "the client closed the connection"))

    async def wait_closed(self) -> None:
        """Returns when the stream has let go of its socket."""
        await self._closed

    def _on_bytes(self, data: memoryview) -> None:
        try:
            for answer in self._frames.feed(data):
                self._on_answer(answer)
        except (FrameTooLarge, WireError) as error:
            reason = f"sent what is no Kafka answer ({error}); is this a Kafka listener, and does it expect TLS?"
            self._fail(ConnectionFailed(str(self.address), reason))

    def _on_answer(self, answer: memoryview) -> None:
        if not self._pending:
            raise WireError("an answer that nobody asked for")
        pending = self._pending.popleft()
        pending.timer.cancel()
        try:
            message = _decode(answer, pending)
        except WireError as error:
            _set_exception(pending.future, ConnectionFailed(str(self.address), f"{pending.spec.name}: {error}"))
            raise
        if not pending.future.done():
            pending.future.set_result(message)

    def _on_timeout(self, api_name: str, wait_ms: int, future: asyncio.Future[Message]) -> None:
        text = f"{self.address} did not answer {api_name} within {wait_ms} ms; is the broker overloaded or stopped?"
        _set_exception(future, RequestTimedOut(text))
        self._fail(ConnectionFailed(str(self.address), f"closed, because {api_name} was not answered in time"))

    def _on_stream_closed(self, error: Exception | None) -> None:
        self._fail(ConnectionFailed(str(self.address), _why_closed(error)))
        if not self._closed.done():
            self._closed.set_result(None)

    def _fail(self, error: KafkaError) -> None:
        if not self._is_open:
            return
        self._is_open = False
        self._stream.abort()
        pending, self._pending = self._pending, deque()
        for one in pending:
            one.timer.cancel()
            _set_exception(one.future, error)
        if self.on_closed is not None:
            self.on_closed()


def _decode(answer: memoryview, pending: _Pending) -> Message:
    if correlation_id_of(answer) != pending.correlation_id:
        raise WireError(f"answer {correlation_id_of(answer)} came where {pending.correlation_id} was due")
    version = pending.version
    # A broker that does not know our ApiVersions version says so in the oldest format; the code stands first in all.
    is_refused = int.from_bytes(answer[4:6], "big", signed=True) == ErrorCode.UNSUPPORTED_VERSION
    if pending.spec.key == API_VERSIONS_KEY and is_refused:
        version = 0
    return parse_response(answer, pending.spec, version)[1]


def _set_exception(future: asyncio.Future[Message], error: KafkaError) -> None:
    if not future.done():
        future.set_exception(error)
        # A caller that went away (cancelled, closed) must not make the loop complain about an unread error.
        future.exception()


def _why_closed(error: Exception | None) -> str:
    if isinstance(error, ssl.SSLError):
        return f"TLS failed ({error.reason or error}); check the certificate, and that the listener speaks TLS"
    if error is not None:
        return f"the connection broke ({error})"
    return (
        "the broker closed the connection; check that client and listener agree on TLS and on SASL, "
        "and look into the broker's log"
    )


def _unsupported(spec: ApiSpec, address: BrokerAddress, first: int, last: int) -> str:
    ours = f"{spec.min_version}-{spec.max_version}"
    if last < 0:
        hint = "; it is offered on the internal listener only" if spec.is_internal else ""
        return f"{address} does not offer {spec.name}{hint}"
    return f"{address} offers {spec.name} {first}-{last}, this client speaks {ours}"
