"""One life of a broker's process, as the controller sees it: registered, fenced, unfenced, shut down.

Heartbeats say that it lives, and ask for what it wants next. Without an answer for one session the broker fences
itself: by then the controller may have given its partitions to others. An answer counts from the moment that its
request was sent, for the controller's own clock began no later.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence

from broker_engine.client.errors import ConnectionFailed
from broker_engine.clock import Clock
from broker_engine.config import BrokerConfig, SecurityProtocol
from broker_engine.errors import BrokerError, ErrorCode
from broker_engine.metadata.parts import EndpointImage
from broker_engine.server.controller_channel import ControllerChannel
from broker_engine.server.formation import Identity
from broker_engine.wire.messages.broker_heartbeat import BrokerHeartbeatRequest, BrokerHeartbeatResponse
from broker_engine.wire.messages.broker_registration import (
    BrokerRegistrationController,
    BrokerRegistrationListener,
    BrokerRegistrationRequest,
    BrokerRegistrationResponse,
)

log = logging.getLogger(__name__)

LANE = "heartbeat"
PROTOCOL_NUMBERS = {
    SecurityProtocol.PLAINTEXT.value: 0,
    SecurityProtocol.SSL.value: 1,
    SecurityProtocol.SASL_PLAINTEXT.value: 2,
    SecurityProtocol.SASL_SSL.value: 3,
}
"""Kafka's."""
SHUTDOWN_TIMEOUT_MS = 30_000
SHUTDOWN_SILENCE_MS_MAX = 2_000
"""Who stops does not wait longer for a controller that may have stopped as well. Leaders then move when it is back."""
_IMPATIENT_INTERVAL_MS = 50
"""Between heartbeats that wait for something: to be unfenced, or to be let go."""
_REFUSED_AGAIN_S = 0.2
_FATAL_CODES = (ErrorCode.STALE_BROKER_EPOCH, ErrorCode.BROKER_ID_NOT_REGISTERED)


class Lifecycle:
    def __init__(
        self,
        *,
        config: BrokerConfig,
        clock: Clock,
        controller: ControllerChannel,
        metadata_offset: Callable[[], int],
        on_fatal: Callable[[Exception], None],
        wants_drain: Callable[[], bool] = lambda: False,
        on_drained: Callable[[], None] = lambda: None,
    ) -> None:
        """`metadata_offset` is the last offset in the image that this node shows; `wants_drain`: others should lead for
        a while, though this broker lives; `on_drained`: they do, and the image may not say so yet.
        """
        self.epoch = -1
        """The broker epoch: one number per life of this process; -1 before it is registered."""
        self.is_unfenced = asyncio.Event()
        self._config = config
        self._clock = clock
        self._controller = controller
        self._metadata_offset = metadata_offset
        self._on_fatal = on_fatal
        self._wants_drain, self._on_drained = wants_drain, on_drained
        self._is_drained = False
        self._heard_ms = 0
        self._is_unanswered = False
        self._is_ready = False
        self._wants_shutdown = False
        self._may_stop = asyncio.Event()
        self._hurry = asyncio.Event()

    @property
    def is_self_fenced(self) -> bool:
        """The controller was not heard of for a whole session, or has let others lead, as asked or not: what this
        broker's image says of its leaders may be old.
        """
        silent_ms = self._clock.monotonic_ms() - self._heard_ms
        return not self.is_unfenced.is_set() or silent_ms > self._config.broker_session_timeout_ms

    # --- registration

    async def register(
        self,
        identity: Identity,
        endpoints: Sequence[EndpointImage],
        controller_endpoint: tuple[str, int] | None,
        previous_epoch: int | None,
    ) -> None:
        """BrokerError where the cluster does not take this broker."""
        request = _registration(identity, endpoints, controller_endpoint, self._config.broker_rack, previous_epoch)
        began_ms = self._clock.monotonic_ms()
        while True:
            sent_ms = self._clock.monotonic_ms()
            response = await self._ask_to_register(request)
            if response.error_code == ErrorCode.NONE:
                self.epoch, self._heard_ms = response.broker_epoch, sent_ms
                return
            code = ErrorCode(response.error_code)
            if not self._may_ask_again(code, began_ms):
                text = response.error_message or code.name
                raise BrokerError(code, f"the cluster does not take this node: {text}")
            await asyncio.sleep(_REFUSED_AGAIN_S)

    def _may_ask_again(self, code: ErrorCode, began_ms: int) -> bool:
        """The session of whoever had our number before may only have to run out: a wiped directory comes back so."""
        if code is not ErrorCode.DUPLICATE_BROKER_REGISTRATION and not code.is_retriable:
            return False
        waited_ms = self._clock.monotonic_ms() - began_ms
        return waited_ms < self._config.broker_session_timeout_ms + self._config.broker_heartbeat_interval_ms

    async def _ask_to_register(self, request: BrokerRegistrationRequest) -> BrokerRegistrationResponse:
        timeout_ms = self._config.initial_broker_registration_timeout_ms
        try:
            return await self._controller.ask(
                request,
                BrokerRegistrationResponse,
                timeout_ms=timeout_ms,
                lane=LANE,
                attempt_timeout_ms=self._config.broker_session_timeout_ms,
            )
        except ConnectionFailed as error:
            text = f"no controller took the registration within {timeout_ms} ms: {error.message}"
            raise BrokerError(ErrorCode.REQUEST_TIMED_OUT, text) from error

    # --- heartbeats

    def ask_to_serve(self) -> None:
        """Logs are open and the metadata is followed: from now on the broker may lead."""
        self._is_ready = True
        self._hurry.set()

    async def ask_to_stop(self) -> None:
        """Returns when the controller has moved our leaders away, or does not answer."""
        if self.epoch < 0:
            return
        self._wants_shutdown = True
        self._hurry.set()
        try:
            async with asyncio.timeout(SHUTDOWN_TIMEOUT_MS / 1000):
                await self._may_stop.wait()
        except TimeoutError:
            log.warning("the controller did not let this broker go within %d ms", SHUTDOWN_TIMEOUT_MS)

    async def run(self) -> None:
        while not self._may_stop.is_set():
            self._hurry.clear()
            await self._beat()
            await self._pause()

    async def _pause(self) -> None:
        wants_to_serve = self._is_ready and not self._wants_drain()
        is_impatient = self._wants_shutdown or (wants_to_serve and not self.is_unfenced.is_set())
        interval_ms = _IMPATIENT_INTERVAL_MS if is_impatient else self._config.broker_heartbeat_interval_ms
        try:
            async with asyncio.timeout(interval_ms / 1000):
                await self._hurry.wait()
        except TimeoutError:
            return

    async def _beat(self) -> None:
        request = BrokerHeartbeatRequest(
            broker_id=self._config.node_id,
            broker_epoch=self.epoch,
            current_metadata_offset=self._metadata_offset(),
            want_fence=not self._is_ready or self._wants_drain(),
            want_shut_down=self._wants_shutdown,
        )
        sent_ms = self._clock.monotonic_ms()
        try:
            response = await self._controller.ask(
                request, BrokerHeartbeatResponse, timeout_ms=self._answer_timeout_ms, lane=LANE
            )
        except ConnectionFailed as error:
            self._on_silence(error)
        else:
            self._on_answer(response, sent_ms)

    @property
    def _answer_timeout_ms(self) -> int:
        patience_ms = self._config.broker_session_timeout_ms // 3
        return min(patience_ms, SHUTDOWN_SILENCE_MS_MAX) if self._wants_shutdown else patience_ms

    def _on_silence(self, error: ConnectionFailed) -> None:
        if not self._is_unanswered:
            log.warning("no controller answers heartbeats: %s", error.message)
        self._is_unanswered = True
        if self._wants_shutdown and self._clock.monotonic_ms() - self._heard_ms > SHUTDOWN_SILENCE_MS_MAX:
            self._may_stop.set()

    def _on_answer(self, response: BrokerHeartbeatResponse, sent_ms: int) -> None:
        if response.error_code in _FATAL_CODES:
            self._on_superseded()
        elif response.error_code != ErrorCode.NONE:
            log.warning("the heartbeat was answered %s", ErrorCode(response.error_code).name)
        else:
            if self._is_unanswered:
                log.info("heartbeats are answered again")
            self._is_unanswered = False
            self._heard_ms = sent_ms
            self._note_fencing(response.is_fenced)
            if response.should_shut_down:
                self._may_stop.set()

    def _on_superseded(self) -> None:
        """Another process registered as this node: two would write to what they think is theirs."""
        self._may_stop.set()
        if not self._wants_shutdown:
            text = f"another process has registered as node {self._config.node_id}, or it was unregistered"
            self._on_fatal(BrokerError(ErrorCode.STALE_BROKER_EPOCH, text))

    def _note_fencing(self, is_fenced: bool) -> None:
        was_drained, self._is_drained = self._is_drained, is_fenced and (self._is_drained or self._wants_drain())
        if self._is_drained and not was_drained:
            self._on_drained()
        if is_fenced and self.is_unfenced.is_set() and not self._wants_shutdown:
            until = "it can do its work" if self._is_drained else "it is heard"
            log.warning("the controller has fenced this broker: others lead until %s again", until)
            self.is_unfenced.clear()
        elif not is_fenced and not self.is_unfenced.is_set():
            log.info("unfenced with broker epoch %d", self.epoch)
            self.is_unfenced.set()


def _registration(
    identity: Identity,
    endpoints: Sequence[EndpointImage],
    controller_endpoint: tuple[str, int] | None,
    rack: str | None,
    previous_epoch: int | None,
) -> BrokerRegistrationRequest:
    host, port = controller_endpoint or ("", 0)
    return BrokerRegistrationRequest(
        broker_id=identity.node_id,
        cluster_id=identity.cluster_id,
        incarnation_id=identity.incarnation_id,
        listeners=[
            BrokerRegistrationListener(
                name=endpoint.name,
                host=endpoint.host,
                port=endpoint.port,
                security_protocol=PROTOCOL_NUMBERS[endpoint.security_protocol],
            )
            for endpoint in endpoints
        ],
        rack=rack,
        log_dirs=[identity.directory_id],
        previous_broker_epoch=-1 if previous_epoch is None else previous_epoch,
        controller_endpoint=BrokerRegistrationController(host=host, port=port),
    )
