"""SaslHandshake (key 17), versions 0-1.

Never flexible. After v1 the SASL bytes travel in SaslAuthenticate, after v0 bare on the connection.
"""

from __future__ import annotations

from broker_engine.wire.api import declare
from broker_engine.wire.kinds import Array, Int16, String
from broker_engine.wire.schema import Message


class SaslHandshakeRequest(Message, versions="0-1", flexible="none"):
    mechanism: String = ""


class SaslHandshakeResponse(Message, versions="0-1", flexible="none"):
    error_code: Int16 = 0
    mechanisms: Array[String] = ()


API = declare(17, "SaslHandshake", SaslHandshakeRequest, SaslHandshakeResponse)
