"""SaslAuthenticate (key 36), versions 0-2."""

from __future__ import annotations

from broker_engine.wire.api import declare
from broker_engine.wire.kinds import Bytes, Int16, Int64, String
from broker_engine.wire.schema import Message, field


class SaslAuthenticateRequest(Message, versions="0-2", flexible="2+"):
    auth_bytes: Bytes = b""


class SaslAuthenticateResponse(Message, versions="0-2", flexible="2+"):
    error_code: Int16 = 0
    error_message: String | None = ""
    auth_bytes: Bytes = b""
    session_lifetime_ms: Int64 = field("1+", default=0, ignorable=True)


API = declare(36, "SaslAuthenticate", SaslAuthenticateRequest, SaslAuthenticateResponse)
