"""One connection's conversation above its frames: header, version, sign-in, scope, handler, answer.

Refusals meet the wire here and nowhere else: a BrokerError becomes the API's own error answer, an unexpected
exception is logged whole and answered UNKNOWN_SERVER_ERROR, and what cannot be read at all is closed without a word,
as Kafka does.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from broker_engine.errors import BrokerError, ErrorCode
from broker_engine.handlers.api import AnyApi, Call, Held, Reply, Scope
from broker_engine.metadata.image import CredentialImage
from broker_engine.net.stream import part_size_bytes
from broker_engine.security.principal import Principal, anonymous
from broker_engine.security.sasl import Close, Refuse, SaslSession
from broker_engine.security.sasl import Outcome as SaslOutcome
from broker_engine.server.forwarding import carry_out
from broker_engine.server.listeners import ListenerSpec
from broker_engine.server.outcome import HANG_UP, NO_ANSWER, Later, Outcome
from broker_engine.server.produce_lane import ProduceLane
from broker_engine.wire.api import API_VERSIONS_KEY
from broker_engine.wire.errors import WireError
from broker_engine.wire.framing import RequestHeader, encode_response, frame, parse_request_header
from broker_engine.wire.messages.produce import ProduceRequest
from broker_engine.wire.schema import Message

if TYPE_CHECKING:
    from broker_engine.server.broker import Broker

log = logging.getLogger(__name__)

FRAME_BYTES_MAX_BEFORE_SIGN_IN = 16 * 1024


class Session:
    def __init__(self, broker: Broker, listener: ListenerSpec, apis: Mapping[int, AnyApi], peer: str) -> None:
        self.broker = broker
        self.listener = listener
        self.apis = apis
        """What this listener speaks: everything else is closed."""
        self.peer = peer
        self.sasl = SaslSession(
            session_lifetime_ms=broker.config.connections_max_reauth_ms,
            failure_delay_ms=broker.config.connection_failed_authentication_delay_ms,
            principal=None if listener.protocol.has_sasl else anonymous(listener.tenant),
        )
        self._credential: CredentialImage | None = None
        self._frame_bytes_max = broker.request_bytes_max
        self._usage_tenant: str | None = None
        self._usage = broker.usage.of(listener.tenant)
        self._lane = ProduceLane(self)

    @property
    def frame_bytes_max(self) -> int:
        return self._frame_bytes_max if self.is_authenticated else FRAME_BYTES_MAX_BEFORE_SIGN_IN

    @property
    def is_authenticated(self) -> bool:
        return self.sasl.is_authenticated

    @property
    def caller(self) -> Principal:
        return self.sasl.principal or anonymous(self.listener.tenant)

    @property
    def is_welcome(self) -> bool:
        return self.sasl.principal is None or self._is_known(self.sasl.principal, self._credential)

    def on_password_checked(self, principal: Principal | None, credential: CredentialImage | None) -> SaslOutcome:
        """`credential` is the API key behind the principal, as it was when the check began: it may be gone by now."""
        if principal is not None and not self._is_known(principal, credential):
            principal = None
        if principal is not None:
            self._credential = credential
        return self.sasl.on_outcome(principal, self.broker.clock.monotonic_ms())

    def _is_known(self, principal: Principal, credential: CredentialImage | None) -> bool:
        """A key that was made anew is another key."""
        image = self.broker.image
        if principal.tenant in image.removed_tenants:
            return False
        return credential is None or image.credential(credential.username) == credential

    def on_frame(self, frame_view: memoryview, following: Iterator[memoryview]) -> tuple[Outcome | Later, int]:
        """See connection.RequestHandler."""
        taken = self._lane.on_frame(frame_view, following)
        return taken if taken is not None else (self._on_any(frame_view), 0)

    def _on_any(self, frame_view: memoryview) -> Outcome | Later:
        if self.sasl.expects_raw_token:
            return Later(self._raw_token(frame_view))
        try:
            header = parse_request_header(frame_view)
            api = self.apis.get(header.api_key)
            if api is None or not api.has_version(header.api_version):
                return self._unknown_version(header)
            request = api.request.decode(header.body, header.api_version)
        except WireError as error:
            log.info("closing %s: %s", self.peer, error)
            return HANG_UP
        self._count_in(len(frame_view))
        result = self._gate(api, header, request)
        if isinstance(request, ProduceRequest):
            self._lane.learn(frame_view, header.api_version, request)
        return result

    def _unknown_version(self, header: RequestHeader) -> Outcome:
        api = self.apis.get(header.api_key)
        if header.api_key != API_VERSIONS_KEY or api is None or not self._may_proceed(api):
            log.info("closing %s: api key %d version %d", self.peer, header.api_key, header.api_version)
            return HANG_UP
        # A newer client learns here how far down it has to go.
        refusal = api.refuse(api.request(), BrokerError(ErrorCode.UNSUPPORTED_VERSION))
        return self._encode(header.correlation_id, refusal, 0)

    def _may_proceed(self, api: AnyApi) -> bool:
        verdict = self.sasl.on_request(api.key, self.broker.clock.monotonic_ms())
        return not isinstance(verdict, Close | Refuse)

    def _gate(self, api: AnyApi, header: RequestHeader, request: Message) -> Outcome | Later:
        """Sign-in first: SaslHandshake and SaslAuthenticate ask the session themselves."""
        if api.is_before_sign_in and api.key != API_VERSIONS_KEY:
            return self._run(api, header, request)
        verdict = self.sasl.on_request(api.key, self.broker.clock.monotonic_ms())
        if isinstance(verdict, Close):
            return HANG_UP
        if isinstance(verdict, Refuse):
            refusal = api.refuse(request, BrokerError(verdict.error_code))
            return self._encode(header.correlation_id, refusal, header.api_version, is_last=True)
        return self._run(api, header, request)

    def _run(self, api: AnyApi, header: RequestHeader, request: Message) -> Outcome | Later:
        try:
            answer = self._call(api, header, request)
        except Exception as error:
            return self._failed(api, header, request, error)
        if isinstance(answer, Message | Reply):
            return self._to_outcome(header, answer)
        if isinstance(answer, Held):
            return Later(self._await_held(api, header, request, answer))
        return Later(
            self._await(api, header, request, answer),
            is_next_allowed=api.is_next_allowed,
            is_cancelled_with_connection=api.is_cancelled_with_connection,
        )

    def _call(self, api: AnyApi, header: RequestHeader, request: Message) -> Any:
        principal = self.caller
        if not api.is_before_sign_in:
            if principal.is_bare_gateway:
                raise BrokerError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, "the gateway acts only on behalf of a caller")
            if api.scope is Scope.BROKERS:
                self._check_node(api, principal)
            if api.scope is Scope.PRIVATE and not principal.may_use_private_apis:
                raise BrokerError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, "only the control plane may ask for this")
        call = Call(self.broker, self, principal, header.api_version, header.client_id)
        return carry_out(api, request, call) if api.is_for_controller else api.handle(request, call)

    def _check_node(self, api: AnyApi, principal: Principal) -> None:
        if not principal.is_broker:
            raise BrokerError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, "only nodes of the cluster may ask for this")
        if not (self.broker.has_joined or api.is_before_joining):
            raise BrokerError(ErrorCode.BROKER_NOT_AVAILABLE, "this node has not joined its cluster yet")

    async def _await(self, api: AnyApi, header: RequestHeader, request: Message, answer: Awaitable[Any]) -> Outcome:
        try:
            return self._to_outcome(header, await answer)
        except Exception as error:
            return self._failed(api, header, request, error)

    async def _await_held(
        self, api: AnyApi, header: RequestHeader, request: Message, held: Held[Any]
    ) -> Outcome | Later:
        try:
            answer = await held.answer
            if isinstance(answer, Message | Reply):
                return self._to_outcome(header, answer)
        except Exception as error:
            return self._failed(api, header, request, error)
        return Later(self._await(api, header, request, answer), is_next_allowed=api.is_next_allowed)

    def _failed(self, api: AnyApi, header: RequestHeader, request: Message, error: Exception) -> Outcome:
        if not isinstance(error, BrokerError):
            log.error("%s v%d from %s failed", api.spec.name, header.api_version, self.peer, exc_info=error)
            error = BrokerError(ErrorCode.UNKNOWN_SERVER_ERROR, "the broker has logged what happened")
        if api.is_answered is not None and not api.is_answered(request):
            return HANG_UP
        try:
            return self._encode(header.correlation_id, api.refuse(request, error), header.api_version)
        except WireError:
            log.exception("%s v%d cannot carry %s", api.spec.name, header.api_version, error.code.name)
            return HANG_UP

    def _to_outcome(self, header: RequestHeader, answer: Message | Reply[Any]) -> Outcome:
        if isinstance(answer, Message):
            return self._encode(header.correlation_id, answer, header.api_version)
        if answer.response is None:
            return HANG_UP if answer.is_last else NO_ANSWER
        return self._encode(header.correlation_id, answer.response, header.api_version, is_last=answer.is_last)

    def _encode(self, correlation_id: int, response: Message, version: int, *, is_last: bool = False) -> Outcome:
        parts = frame(encode_response(correlation_id, response, version))
        self._usage.bytes_out += sum(map(part_size_bytes, parts))
        return Outcome(parts, is_last=is_last)

    async def _raw_token(self, token: memoryview) -> Outcome:
        """After SaslHandshake v0 a token is a bare frame, and so is its answer."""
        from broker_engine.handlers.sasl_authenticate import sign_in_with_raw_token

        data = await sign_in_with_raw_token(self, bytes(token))
        return HANG_UP if data is None else Outcome([len(data).to_bytes(4, "big") + data])

    def _count_in(self, size_bytes: int) -> None:
        tenant = self.sasl.principal.tenant if self.sasl.principal is not None else self.listener.tenant
        if tenant != self._usage_tenant:
            self._usage_tenant = tenant
            self._usage = self.broker.usage.of(tenant)
        self._usage.requests += 1
        self._usage.bytes_in += size_bytes + 4
