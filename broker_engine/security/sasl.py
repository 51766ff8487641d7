"""SaslSession: the sign-in conversation of one connection (protocol.md 2.10, contracts.md section 2). Pure.

                     on_api_versions_answered            on_handshake              on_authenticate / on_raw_token
    START ---------------------------------> VERSIONED ----------> AWAITING_TOKEN ------------------------> CHECKING
      |______________________ on_handshake ____________________________^   ^                                   |
                                                                           | on_handshake (re-authenticate)    | outcome
                                                                     AUTHENTICATED <---------------------------+
    and from everywhere: CLOSED, after which the session answers nothing.

The shell asks about every request before it handles it, and carries out the answer: values, no calls back. A connection
of a listener without authentication starts as AUTHENTICATED, where both SASL requests are answered 34, as Kafka does.
Left out: SCRAM tokens.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum, auto

from broker_engine.errors import ErrorCode
from broker_engine.security.plain import PlainError, PlainMessage, parse_plain
from broker_engine.security.principal import Principal

PLAIN = "PLAIN"
API_VERSIONS_KEY = 18

# One text for every failure: it must not tell a wrong name from a wrong password, a limit or a missing right.
FAILED_TEXT = "Authentication failed: Invalid username or password"
AFTER_SUCCESS_TEXT = "SaslAuthenticate request received after successful authentication"
FAILURE_DELAY_MS_DEFAULT = 100


class Phase(Enum):
    START = auto()
    VERSIONED = auto()
    AWAITING_TOKEN = auto()
    CHECKING = auto()
    AUTHENTICATED = auto()
    CLOSED = auto()


NEXT_PHASES: dict[Phase, frozenset[Phase]] = {
    Phase.START: frozenset({Phase.VERSIONED, Phase.AWAITING_TOKEN, Phase.CLOSED}),
    Phase.VERSIONED: frozenset({Phase.AWAITING_TOKEN, Phase.CLOSED}),
    Phase.AWAITING_TOKEN: frozenset({Phase.CHECKING, Phase.CLOSED}),
    Phase.CHECKING: frozenset({Phase.AUTHENTICATED, Phase.CLOSED}),
    Phase.AUTHENTICATED: frozenset({Phase.AWAITING_TOKEN, Phase.CLOSED}),
    Phase.CLOSED: frozenset({Phase.CLOSED}),
}


@dataclass(frozen=True, slots=True)
class Proceed:
    """Handle the request."""


@dataclass(frozen=True, slots=True)
class Refuse:
    """Answer in the request's own format with this code, then close."""

    error_code: ErrorCode


@dataclass(frozen=True, slots=True)
class Close:
    """Close without an answer, after the delay."""

    delay_ms: int = 0


@dataclass(frozen=True, slots=True)
class HandshakeReply:
    error_code: ErrorCode
    mechanisms: tuple[str, ...]
    then_close: bool = False


@dataclass(frozen=True, slots=True)
class AuthenticateReply:
    error_code: ErrorCode
    error_message: str
    session_lifetime_ms: int = 0
    then_close: bool = False
    delay_ms: int = 0
    """Hold the answer, and the close, this long: guessing costs time."""
    auth_bytes: bytes = b""


@dataclass(frozen=True, slots=True)
class RawReply:
    """A frame of a length and these bytes, without a response header: the answer after a handshake of version 0."""

    data: bytes = b""


@dataclass(frozen=True, slots=True)
class NeedPasswordCheck:
    """Check the claim off the event loop, read nothing more from the connection, then call `on_outcome`."""

    claim: PlainMessage


RequestVerdict = Proceed | Refuse | Close
TokenVerdict = NeedPasswordCheck | AuthenticateReply | RawReply | Refuse | Close
Outcome = AuthenticateReply | RawReply | Close


class SaslSession:
    def __init__(
        self,
        *,
        mechanisms: Sequence[str] = (PLAIN,),
        session_lifetime_ms: int = 0,
        failure_delay_ms: int = FAILURE_DELAY_MS_DEFAULT,
        principal: Principal | None = None,
    ) -> None:
        """Give `principal` for a listener without authentication: the session is then done before it begins."""
        self.phase = Phase.START if principal is None else Phase.AUTHENTICATED
        self.principal = principal
        self._mechanisms = tuple(mechanisms)
        self._session_lifetime_ms = session_lifetime_ms if principal is None else 0
        self._failure_delay_ms = failure_delay_ms
        self._mechanism: str | None = None
        self._is_raw = False
        self._expires_at_ms: int | None = None

    @property
    def is_authenticated(self) -> bool:
        return self.phase is Phase.AUTHENTICATED

    @property
    def expects_raw_token(self) -> bool:
        """The next frame is a bare token, without a request header."""
        return self.phase is Phase.AWAITING_TOKEN and self._is_raw

    # --- every request but SaslHandshake and SaslAuthenticate

    def on_request(self, api_key: int, now_ms: int) -> RequestVerdict:
        assert self.phase is not Phase.CHECKING, "requests are read one at a time during sign-in"
        if self.phase is Phase.AUTHENTICATED:
            return self._close() if self._is_expired(now_ms) else Proceed()
        if self.phase is Phase.START and api_key == API_VERSIONS_KEY:
            return Proceed()
        if self.phase is Phase.AWAITING_TOKEN:
            return self._refuse_state()
        return self._close()

    def may_go_on(self, now_ms: int) -> bool:
        """Signed in, and not for too long: what `on_request` would say of an ordinary request, without a verdict."""
        return self.phase is Phase.AUTHENTICATED and not self._is_expired(now_ms)

    def on_api_versions_answered(self, error_code: ErrorCode) -> None:
        """Call after each ApiVersions answer. One that failed (35, 42) may be tried again, a good one may not."""
        if self.phase is Phase.START and error_code is ErrorCode.NONE:
            self._move_to(Phase.VERSIONED)

    # --- SaslHandshake

    def on_handshake(self, mechanism: str, version: int) -> HandshakeReply | Refuse | Close:
        assert self.phase is not Phase.CHECKING, "requests are read one at a time during sign-in"
        if self.phase is Phase.CLOSED:
            return Close()
        if self.phase is Phase.AWAITING_TOKEN:
            return self._refuse_state()
        if self.phase is Phase.AUTHENTICATED and not self._session_lifetime_ms:
            return HandshakeReply(ErrorCode.ILLEGAL_SASL_STATE, ())
        return self._begin(mechanism, version)

    def _begin(self, mechanism: str, version: int) -> HandshakeReply:
        if mechanism not in self._mechanisms:
            self._move_to(Phase.CLOSED)
            return HandshakeReply(ErrorCode.UNSUPPORTED_SASL_MECHANISM, self._mechanisms, then_close=True)
        if self._mechanism not in (None, mechanism):
            # Re-authentication may not change the mechanism. Kafka says yes and hangs up.
            self._move_to(Phase.CLOSED)
            return HandshakeReply(ErrorCode.NONE, self._mechanisms, then_close=True)
        self._mechanism = mechanism
        self._is_raw = version == 0
        self._move_to(Phase.AWAITING_TOKEN)
        return HandshakeReply(ErrorCode.NONE, self._mechanisms)

    # --- tokens

    def on_authenticate(self, auth_bytes: bytes | memoryview) -> TokenVerdict:
        assert self.phase is not Phase.CHECKING, "requests are read one at a time during sign-in"
        if self.phase is Phase.AUTHENTICATED:
            return AuthenticateReply(ErrorCode.ILLEGAL_SASL_STATE, AFTER_SUCCESS_TEXT)
        if self.phase is not Phase.AWAITING_TOKEN or self._is_raw:
            return self._close()
        return self._on_token(auth_bytes)

    def on_raw_token(self, token: bytes | memoryview) -> TokenVerdict:
        assert self.expects_raw_token
        return self._on_token(token)

    def _on_token(self, token: bytes | memoryview) -> TokenVerdict:
        self._move_to(Phase.CHECKING)
        try:
            return NeedPasswordCheck(parse_plain(token))
        except PlainError:
            return self._fail()

    def on_outcome(self, principal: Principal | None, now_ms: int) -> Outcome:
        """The check is done: `principal` is whom the connection acts for from now on, None a refusal."""
        assert self.phase is Phase.CHECKING
        if principal is None or self.principal not in (None, principal):
            return self._fail()
        self.principal = principal
        self._expires_at_ms = now_ms + self._session_lifetime_ms if self._session_lifetime_ms else None
        self._move_to(Phase.AUTHENTICATED)
        if self._is_raw:
            return RawReply()
        return AuthenticateReply(ErrorCode.NONE, "", session_lifetime_ms=self._session_lifetime_ms)

    # --- helpers

    def _fail(self) -> AuthenticateReply | Close:
        self._move_to(Phase.CLOSED)
        if self._is_raw:
            return Close(delay_ms=self._failure_delay_ms)
        code = ErrorCode.SASL_AUTHENTICATION_FAILED
        return AuthenticateReply(code, FAILED_TEXT, then_close=True, delay_ms=self._failure_delay_ms)

    def _refuse_state(self) -> Refuse:
        self._move_to(Phase.CLOSED)
        return Refuse(ErrorCode.ILLEGAL_SASL_STATE)

    def _close(self) -> Close:
        self._move_to(Phase.CLOSED)
        return Close()

    def _is_expired(self, now_ms: int) -> bool:
        return self._expires_at_ms is not None and now_ms >= self._expires_at_ms

    def _move_to(self, phase: Phase) -> None:
        assert phase in NEXT_PHASES[self.phase], f"{self.phase.name} -> {phase.name}"
        self.phase = phase
