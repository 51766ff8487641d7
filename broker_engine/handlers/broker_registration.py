"""BrokerRegistration (key 62), versions 0-4: a broker's process joins, fenced until its heartbeats ask for more.

The broker epoch that it gets is this life's number. Left out: features (one version of Highwater per cluster so far),
migration from ZooKeeper.
"""

from __future__ import annotations

from broker_engine.errors import BrokerError, ErrorCode
from broker_engine.handlers.api import Api, Call, Scope
from broker_engine.metadata.controller import register_broker
from broker_engine.metadata.parts import EndpointImage
from broker_engine.wire.messages.broker_registration import (
    BrokerRegistrationListener,
    BrokerRegistrationRequest,
    BrokerRegistrationResponse,
)
from broker_engine.wire.primitives import NULL_UUID

PROTOCOL_NAMES = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
"""By Kafka's numbers."""
_CONTROLLER = "controller"


async def handle(request: BrokerRegistrationRequest, call: Call) -> BrokerRegistrationResponse:
    _check_cluster(request, call)
    broker, liveness = call.broker, call.broker.controller_loop.liveness
    endpoints = [_endpoint(listener) for listener in request.listeners]
    now_ms = broker.clock.monotonic_ms()
    await broker.metadata.commit(
        lambda image: register_broker(
            image,
            broker_id=request.broker_id,
            incarnation_id=request.incarnation_id,
            directory_id=request.log_dirs[0] if request.log_dirs else NULL_UUID,
            endpoints=endpoints,
            controller_endpoint=_controller_endpoint(request),
            rack=request.rack,
            previous_broker_epoch=request.previous_broker_epoch,
            is_old_session_alive=liveness.is_alive(request.broker_id, now_ms),
            config=broker.config,
            new_id=broker.randomness.uuid,
        )
    )
    registered = broker.image.brokers.get(request.broker_id)
    if registered is None or registered.incarnation_id != request.incarnation_id:
        raise BrokerError(ErrorCode.DUPLICATE_BROKER_REGISTRATION, "another process registered as this broker since")
    liveness.touch(request.broker_id, registered.epoch, broker.clock.monotonic_ms())
    return BrokerRegistrationResponse(broker_epoch=registered.epoch)


def refuse(request: BrokerRegistrationRequest, error: BrokerError) -> BrokerRegistrationResponse:
    return BrokerRegistrationResponse(error_code=error.code, error_message=error.message or None)


def _check_cluster(request: BrokerRegistrationRequest, call: Call) -> None:
    cluster_id = call.broker.cluster_id
    if request.cluster_id != cluster_id:
        text = f"broker {request.broker_id} belongs to cluster {request.cluster_id}, not to {cluster_id}"
        raise BrokerError(ErrorCode.INCONSISTENT_CLUSTER_ID, text)


def _endpoint(listener: BrokerRegistrationListener) -> EndpointImage:
    if not 0 <= listener.security_protocol < len(PROTOCOL_NAMES):
        raise BrokerError(ErrorCode.INVALID_REGISTRATION, f"security protocol {listener.security_protocol} is unknown")
    return EndpointImage(listener.name, listener.host, listener.port, PROTOCOL_NAMES[listener.security_protocol])


def _controller_endpoint(request: BrokerRegistrationRequest) -> EndpointImage | None:
    given = request.controller_endpoint
    return EndpointImage(_CONTROLLER, given.host, given.port, "SASL_PLAINTEXT") if given.host else None


API = Api(request=BrokerRegistrationRequest, scope=Scope.BROKERS, handle=handle, refuse=refuse)
