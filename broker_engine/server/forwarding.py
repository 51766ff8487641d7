"""Requests that only the controller can carry out reach it from any broker, in an Envelope with who sent them.

The answer comes back with the metadata offset that it speaks of; the client gets it once this broker shows that much,
so that what it just made is there when it asks here next. Both ends of the envelope are in this file.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from broker_engine.client.errors import ConnectionFailed
from broker_engine.errors import BrokerError, ErrorCode
from broker_engine.handlers.api import AnyApi, Call, Reply
from broker_engine.security.principal import Principal
from broker_engine.wire.errors import WireError
from broker_engine.wire.framing import encode_request, encode_response, parse_request_header, parse_response
from broker_engine.wire.messages.envelope import EnvelopeOrigin, EnvelopeRequest, EnvelopeResponse
from broker_engine.wire.schema import Message

if TYPE_CHECKING:
    from broker_engine.server.broker import Broker

LANE = "forward"
TIMEOUT_MS = 20_000
_ORIGIN_VERSION = 0
_CORRELATION_ID = 0


async def carry_out(api: AnyApi, request: Message, call: Call) -> Message:
    """Here where this node leads, else by the controller. BrokerError where that cannot be."""
    if call.broker.is_controller:
        try:
            return await run(api, request, call)
        except BrokerError as error:
            if error.code is not ErrorCode.NOT_CONTROLLER:
                raise
    return await _forward(api, request, call)


async def run(api: AnyApi, request: Message, call: Call) -> Message:
    result: Any = api.handle(request, call)
    if inspect.isawaitable(result):
        result = await result
    response = result.response if isinstance(result, Reply) else result
    assert isinstance(response, Message), f"{api.spec.name} was not answered"
    return response


# --- the sender's end


async def _forward(api: AnyApi, request: Message, call: Call) -> Message:
    try:
        answer = await call.broker.controller.ask(
            _seal(request, call), EnvelopeResponse, timeout_ms=TIMEOUT_MS, lane=LANE
        )
    except ConnectionFailed as error:
        raise BrokerError(ErrorCode.REQUEST_TIMED_OUT, f"the controller cannot be reached: {error.message}") from error
    if answer.response_data is None:
        raise BrokerError(ErrorCode(answer.error_code), "the controller did not take the request")
    await wait_until_shown(call.broker, answer.metadata_offset)
    return parse_response(memoryview(answer.response_data), api.spec, call.version)[1]


def _seal(request: Message, call: Call) -> EnvelopeRequest:
    principal = call.principal
    origin = EnvelopeOrigin(
        tenant=principal.tenant,
        name=principal.name,
        is_internal=principal.is_internal,
        on_behalf_by=principal.on_behalf_by,
        listener_name=call.session.listener.name,
    )
    parts = encode_request(_CORRELATION_ID, call.client_id, request, call.version)
    return EnvelopeRequest(
        request_data=_joined(parts),
        request_principal=origin.encode(_ORIGIN_VERSION),
        client_host_address=call.session.peer.encode(),
    )


async def wait_until_shown(broker: Broker, metadata_offset: int) -> None:
    """A broker that does not keep up answers anyway: what was asked for is done."""
    try:
        async with asyncio.timeout(TIMEOUT_MS / 1000):
            await broker.metadata.wait_for_offset(metadata_offset)
    except TimeoutError:
        return


# --- the controller's end


async def open_envelope(envelope: EnvelopeRequest, call: Call, apis: Mapping[int, AnyApi]) -> EnvelopeResponse:
    """Run what is inside as whoever sent it. BrokerError where this node is not the controller (any more)."""
    api, request, inner = _unseal(envelope, call, apis)
    if not call.broker.is_controller:
        raise BrokerError(ErrorCode.NOT_CONTROLLER)
    try:
        response = await run(api, request, inner)
    except BrokerError as error:
        if error.code is ErrorCode.NOT_CONTROLLER:
            raise
        response = api.refuse(request, error)
    return EnvelopeResponse(
        response_data=_joined(encode_response(_CORRELATION_ID, response, inner.version)),
        metadata_offset=call.broker.image.next_offset,
    )


def _unseal(envelope: EnvelopeRequest, call: Call, apis: Mapping[int, AnyApi]) -> tuple[AnyApi, Message, Call]:
    try:
        header = parse_request_header(memoryview(envelope.request_data))
        api = apis.get(header.api_key)
        if api is None or not api.is_for_controller or not api.has_version(header.api_version):
            raise BrokerError(ErrorCode.INVALID_REQUEST, "an envelope holds what is for the controller, nothing else")
        request = api.request.decode(header.body, header.api_version)
        origin = EnvelopeOrigin.decode(envelope.request_principal or b"", _ORIGIN_VERSION)
    except WireError as error:
        raise BrokerError(ErrorCode.INVALID_REQUEST, str(error)) from error
    principal = Principal(origin.tenant, origin.name, origin.is_internal, origin.on_behalf_by)
    return api, request, Call(call.broker, call.session, principal, header.api_version, header.client_id)


def _joined(parts: list[Any]) -> bytes:
    assert all(isinstance(part, bytes | bytearray | memoryview) for part in parts), "no records go by envelope"
    return b"".join(parts)
