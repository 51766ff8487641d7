from __future__ import annotations

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from broker_engine.errors import ErrorCode
from broker_engine.security import sasl
from broker_engine.security.principal import Principal, anonymous
from broker_engine.security.sasl import (
    AuthenticateReply,
    Close,
    HandshakeReply,
    NeedPasswordCheck,
    Phase,
    Proceed,
    RawReply,
    Refuse,
    SaslSession,
)

ALICE = Principal("demo", "alice")
METADATA = 3
GOOD_TOKEN = b"\0alice\0pw"


def signed_in(session_lifetime_ms: int = 0, *, handshake_version: int = 1) -> SaslSession:
    session = SaslSession(session_lifetime_ms=session_lifetime_ms)
    session.on_handshake("PLAIN", handshake_version)
    if handshake_version == 0:
        session.on_raw_token(GOOD_TOKEN)
    else:
        session.on_authenticate(GOOD_TOKEN)
    session.on_outcome(ALICE, now_ms=0)
    return session


def test_the_usual_walk() -> None:
    session = SaslSession()
    assert session.on_request(sasl.API_VERSIONS_KEY, 0) == Proceed()
    session.on_api_versions_answered(ErrorCode.NONE)
    assert session.on_handshake("PLAIN", 1) == HandshakeReply(ErrorCode.NONE, ("PLAIN",))
    need = session.on_authenticate(GOOD_TOKEN)
    assert isinstance(need, NeedPasswordCheck)
    assert need.claim.username == "alice"
    assert session.on_outcome(ALICE, 0) == AuthenticateReply(ErrorCode.NONE, "")
    assert session.principal == ALICE
    assert session.on_request(METADATA, 0) == Proceed()


def test_the_handshake_may_come_first() -> None:
    assert SaslSession().on_handshake("PLAIN", 1).__class__ is HandshakeReply


@pytest.mark.parametrize("api_key", [METADATA, 0, 1, 10_001])
def test_any_other_first_request_is_closed_without_an_answer(api_key: int) -> None:
    assert SaslSession().on_request(api_key, 0) == Close()


def test_a_token_before_the_handshake_is_closed_without_an_answer() -> None:
    assert SaslSession().on_authenticate(GOOD_TOKEN) == Close()


def test_a_second_api_versions_before_the_handshake_is_closed() -> None:
    session = SaslSession()
    session.on_api_versions_answered(ErrorCode.NONE)
    assert session.on_request(sasl.API_VERSIONS_KEY, 0) == Close()


def test_an_api_versions_of_an_unknown_version_may_be_tried_again() -> None:
    session = SaslSession()
    session.on_api_versions_answered(ErrorCode.UNSUPPORTED_VERSION)
    assert session.on_request(sasl.API_VERSIONS_KEY, 0) == Proceed()


@pytest.mark.parametrize("api_key", [METADATA, sasl.API_VERSIONS_KEY])
def test_another_request_after_the_handshake_is_answered_34_in_its_own_format(api_key: int) -> None:
    session = SaslSession()
    session.on_handshake("PLAIN", 1)
    assert session.on_request(api_key, 0) == Refuse(ErrorCode.ILLEGAL_SASL_STATE)
    assert session.phase is Phase.CLOSED


def test_a_second_handshake_is_answered_34() -> None:
    session = SaslSession()
    session.on_handshake("PLAIN", 1)
    assert session.on_handshake("PLAIN", 1) == Refuse(ErrorCode.ILLEGAL_SASL_STATE)


@pytest.mark.parametrize("mechanism", ["NOPE", "", "plain", "GSSAPI", "SCRAM-SHA-256"])
def test_an_unknown_mechanism_is_answered_33_with_the_list(mechanism: str) -> None:
    reply = SaslSession().on_handshake(mechanism, 1)
    assert reply == HandshakeReply(ErrorCode.UNSUPPORTED_SASL_MECHANISM, ("PLAIN",), then_close=True)


@pytest.mark.parametrize("token", [b"", b"junk", b"\0\0", b"\0" + b"u" * 1_000_000 + b"\0p"])
def test_malformed_tokens_get_the_same_refusal_as_a_wrong_password(token: bytes) -> None:
    malformed = SaslSession()
    malformed.on_handshake("PLAIN", 1)
    wrong = SaslSession()
    wrong.on_handshake("PLAIN", 1)
    wrong.on_authenticate(GOOD_TOKEN)
    refusal = wrong.on_outcome(None, 0)
    assert malformed.on_authenticate(token) == refusal
    assert refusal == AuthenticateReply(
        ErrorCode.SASL_AUTHENTICATION_FAILED, sasl.FAILED_TEXT, then_close=True, delay_ms=sasl.FAILURE_DELAY_MS_DEFAULT
    )


def test_handshake_version_0_takes_bare_tokens_and_answers_an_empty_frame() -> None:
    session = SaslSession()
    session.on_handshake("PLAIN", 0)
    assert session.expects_raw_token
    assert isinstance(session.on_raw_token(GOOD_TOKEN), NeedPasswordCheck)
    assert session.on_outcome(ALICE, 0) == RawReply(b"")
    assert not session.expects_raw_token


def test_handshake_version_0_closes_on_failure() -> None:
    session = SaslSession()
    session.on_handshake("PLAIN", 0)
    session.on_raw_token(GOOD_TOKEN)
    assert session.on_outcome(None, 0) == Close(delay_ms=sasl.FAILURE_DELAY_MS_DEFAULT)


@pytest.mark.parametrize(
    "session", [signed_in(), SaslSession(principal=anonymous("demo"))], ids=["signed in", "plaintext"]
)
def test_both_sasl_requests_answer_34_once_there_is_nothing_to_settle(session: SaslSession) -> None:
    assert session.on_handshake("PLAIN", 1) == HandshakeReply(ErrorCode.ILLEGAL_SASL_STATE, ())
    assert session.on_authenticate(b"x") == AuthenticateReply(ErrorCode.ILLEGAL_SASL_STATE, sasl.AFTER_SUCCESS_TEXT)
    assert session.on_request(METADATA, 0) == Proceed()


@pytest.mark.parametrize("handshake_version", [0, 1])
def test_an_expired_session_closes_on_the_first_other_request(handshake_version: int) -> None:
    session = signed_in(1000, handshake_version=handshake_version)
    assert session.on_request(METADATA, 999) == Proceed()
    assert session.on_request(METADATA, 1000) == Close()


def test_re_authentication_extends_an_expired_session() -> None:
    session = signed_in(1000)
    assert session.on_handshake("PLAIN", 1) == HandshakeReply(ErrorCode.NONE, ("PLAIN",))
    session.on_authenticate(GOOD_TOKEN)
    assert session.on_outcome(ALICE, 5000) == AuthenticateReply(ErrorCode.NONE, "", session_lifetime_ms=1000)
    assert session.on_request(METADATA, 5999) == Proceed()


def test_re_authentication_as_somebody_else_is_refused() -> None:
    session = signed_in(1000)
    session.on_handshake("PLAIN", 1)
    session.on_authenticate(GOOD_TOKEN)
    reply = session.on_outcome(Principal("demo", "bob"), 10)
    assert isinstance(reply, AuthenticateReply)
    assert (reply.error_code, reply.then_close) == (ErrorCode.SASL_AUTHENTICATION_FAILED, True)


def test_re_authentication_by_another_mechanism_is_taken_and_closed() -> None:
    session = SaslSession(mechanisms=("PLAIN", "SCRAM-SHA-256"), session_lifetime_ms=1000)
    session.on_handshake("PLAIN", 1)
    session.on_authenticate(GOOD_TOKEN)
    session.on_outcome(ALICE, 0)
    reply = session.on_handshake("SCRAM-SHA-256", 1)
    assert reply == HandshakeReply(ErrorCode.NONE, ("PLAIN", "SCRAM-SHA-256"), then_close=True)


class AnyOrderOfRequests(RuleBasedStateMachine):
    """Whatever a client sends, no request but ApiVersions is handled before a check has said yes."""

    def __init__(self) -> None:
        super().__init__()
        self.session = SaslSession(session_lifetime_ms=50)
        self.said_yes = False
        self.now_ms = 0

    @precondition(lambda self: self.session.phase is not Phase.CHECKING)
    @rule(api_key=st.sampled_from([0, 1, METADATA, sasl.API_VERSIONS_KEY]), later_ms=st.integers(0, 60))
    def other_request(self, api_key: int, later_ms: int) -> None:
        self.now_ms += later_ms
        verdict = self.session.on_request(api_key, self.now_ms)
        if isinstance(verdict, Proceed):
            assert self.said_yes or api_key == sasl.API_VERSIONS_KEY
            self.session.on_api_versions_answered(ErrorCode.NONE)

    @precondition(lambda self: self.session.phase is not Phase.CHECKING)
    @rule(mechanism=st.sampled_from(["PLAIN", "NOPE"]), version=st.integers(0, 1))
    def handshake(self, mechanism: str, version: int) -> None:
        self.session.on_handshake(mechanism, version)

    @precondition(lambda self: self.session.phase is not Phase.CHECKING)
    @rule(token=st.sampled_from([GOOD_TOKEN, b"", b"junk"]))
    def token(self, token: bytes) -> None:
        if self.session.expects_raw_token:
            self.session.on_raw_token(token)
        else:
            self.session.on_authenticate(token)

    @precondition(lambda self: self.session.phase is Phase.CHECKING)
    @rule(principal=st.sampled_from([None, ALICE, Principal("demo", "bob")]))
    def outcome(self, principal: Principal | None) -> None:
        self.session.on_outcome(principal, self.now_ms)
        self.said_yes = self.said_yes or principal is not None

    @invariant()
    def authenticated_only_by_a_check(self) -> None:
        assert self.said_yes or not self.session.is_authenticated


TestAnyOrderOfRequests = AnyOrderOfRequests.TestCase
TestAnyOrderOfRequests.settings = settings(max_examples=60, stateful_step_count=20, deadline=None)
