"""BrokerHeartbeat (key 63), versions 0-1: a broker lives, and says what it wants: to serve, to be left out, to stop.

One that has nothing to change costs no record. Who stops is let go when its leaders have moved and the others know, or
have had time to. Left out: directories that went offline (a broker has one).
"""

from __future__ import annotations

from broker_engine.errors import BrokerError, ErrorCode
from broker_engine.handlers.api import Api, Call, Scope
from broker_engine.metadata.controller import (
    controlled_shutdown,
    fence_broker,
    is_cluster_of_one,
    led_count,
    registered,
    unfence_broker,
)
from broker_engine.wire.messages.broker_heartbeat import BrokerHeartbeatRequest, BrokerHeartbeatResponse

STOP_WAIT_MS_MAX = 500
"""Brokers learn of new leaders in milliseconds, but say so only with their next heartbeat."""


async def handle(request: BrokerHeartbeatRequest, call: Call) -> BrokerHeartbeatResponse:
    broker = call.broker
    if not broker.is_controller:
        raise BrokerError(ErrorCode.NOT_CONTROLLER)
    state = registered(broker.image, request.broker_id, request.broker_epoch)
    offset = request.current_metadata_offset
    now_ms = broker.clock.monotonic_ms()
    broker.controller_loop.liveness.touch(state.id, state.epoch, now_ms, metadata_offset=offset)
    should_shut_down = request.want_shut_down and await _may_stop(request, call)
    if not request.want_shut_down:
        await _fence_as_wanted(request, call)
    state = registered(broker.image, request.broker_id, request.broker_epoch)
    return BrokerHeartbeatResponse(
        is_caught_up=offset >= state.epoch, is_fenced=state.is_fenced, should_shut_down=should_shut_down
    )


def refuse(request: BrokerHeartbeatRequest, error: BrokerError) -> BrokerHeartbeatResponse:
    return BrokerHeartbeatResponse(error_code=error.code)


async def _fence_as_wanted(request: BrokerHeartbeatRequest, call: Call) -> None:
    broker_id, epoch, config = request.broker_id, request.broker_epoch, call.broker.config
    image, liveness = call.broker.image, call.broker.controller_loop.liveness
    is_fenced, seen_offset = image.brokers[broker_id].is_fenced, request.current_metadata_offset
    if is_fenced and not request.want_fence:
        if liveness.has_caught_up(broker_id, epoch, seen_offset, image.next_offset - 1):
            await call.broker.metadata.commit(lambda image: unfence_broker(image, broker_id, epoch, config=config))
            liveness.note_unfenced(broker_id)
    elif request.want_fence and not is_fenced and not is_cluster_of_one(call.broker.image, broker_id):
        await call.broker.metadata.commit(lambda image: fence_broker(image, broker_id, epoch, config=config))


async def _may_stop(request: BrokerHeartbeatRequest, call: Call) -> bool:
    broker, broker_id, epoch = call.broker, request.broker_id, request.broker_epoch
    config, liveness = broker.config, broker.controller_loop.liveness
    state = broker.image.brokers[broker_id]
    if state.is_fenced or is_cluster_of_one(broker.image, broker_id):
        return True
    if not state.is_shutting_down:
        await broker.metadata.commit(lambda image: controlled_shutdown(image, broker_id, epoch, config=config))
    now_ms = broker.clock.monotonic_ms()
    offset, began_ms = liveness.stop_began(broker_id, epoch, broker.image.next_offset - 1, now_ms)
    is_known = liveness.has_everybody_reached(broker.image, offset, but=broker_id)
    if led_count(broker.image, broker_id) or not (is_known or now_ms - began_ms >= STOP_WAIT_MS_MAX):
        return False
    await broker.metadata.commit(lambda image: fence_broker(image, broker_id, epoch, config=config))
    liveness.forget(broker_id, epoch)
    return True


API = Api(request=BrokerHeartbeatRequest, scope=Scope.BROKERS, handle=handle, refuse=refuse)
