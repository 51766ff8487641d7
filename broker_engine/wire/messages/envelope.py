"""Envelope (key 58), version 0: a broker passes a client's request on to the controller, with who sent it.

`EnvelopeOrigin` is ours: it stands in `request_principal`. `metadata_offset` is ours too: the forwarding broker answers
its client only once its own metadata is past it, so that what was made is there to be used.
"""

from __future__ import annotations

from broker_engine.wire.api import declare
from broker_engine.wire.kinds import Bool, Bytes, Int16, Int64, String
from broker_engine.wire.schema import Message, Struct, field


class EnvelopeOrigin(Struct):
    """The principal that sent the request, and the listener that it came by."""

    tenant: String = ""
    name: String = ""
    is_internal: Bool = False
    on_behalf_by: String | None = None
    listener_name: String = ""


class EnvelopeRequest(Message, versions="0", flexible="0+"):
    request_data: Bytes = b""
    request_principal: Bytes | None = b""
    client_host_address: Bytes = b""


class EnvelopeResponse(Message, versions="0", flexible="0+"):
    response_data: Bytes | None = None
    error_code: Int16 = 0
    metadata_offset: Int64 = field(default=-1, tag=10000, ignorable=True)


API = declare(58, "Envelope", EnvelopeRequest, EnvelopeResponse, is_between_brokers=True)
