"""Envelope (key 58), version 0: another broker passes on a client's request that only the controller can carry out."""

from __future__ import annotations

from broker_engine.errors import BrokerError
from broker_engine.handlers.api import Api, Call, Scope
from broker_engine.server.forwarding import open_envelope
from broker_engine.wire.messages.envelope import EnvelopeRequest, EnvelopeResponse


async def handle(request: EnvelopeRequest, call: Call) -> EnvelopeResponse:
    from broker_engine.handlers import FORWARDED_APIS  # the list of all handlers, this one among them

    return await open_envelope(request, call, FORWARDED_APIS)


def refuse(request: EnvelopeRequest, error: BrokerError) -> EnvelopeResponse:
    return EnvelopeResponse(error_code=error.code)


API = Api(request=EnvelopeRequest, scope=Scope.BROKERS, handle=handle, refuse=refuse, is_next_allowed=True)
