"""SaslHandshake (key 17), versions 0-1. Chooses the mechanism; PLAIN is the only one. Left out: SCRAM, OAUTHBEARER."""

from __future__ import annotations

from broker_engine.errors import BrokerError
from broker_engine.handlers.api import Api, Call, Reply, Scope
from broker_engine.security.sasl import HandshakeReply, Refuse
from broker_engine.wire.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse


def handle(request: SaslHandshakeRequest, call: Call) -> Reply[SaslHandshakeResponse]:
    verdict = call.session.sasl.on_handshake(request.mechanism, call.version)
    if isinstance(verdict, HandshakeReply):
        response = SaslHandshakeResponse(error_code=verdict.error_code, mechanisms=list(verdict.mechanisms))
        return Reply(response, is_last=verdict.then_close)
    if isinstance(verdict, Refuse):
        return Reply(SaslHandshakeResponse(error_code=verdict.error_code), is_last=True)
    return Reply(None, is_last=True)


def refuse(request: SaslHandshakeRequest, error: BrokerError) -> SaslHandshakeResponse:
    return SaslHandshakeResponse(error_code=error.code)


API = Api(request=SaslHandshakeRequest, scope=Scope.NAMELESS, handle=handle, refuse=refuse, is_before_sign_in=True)
