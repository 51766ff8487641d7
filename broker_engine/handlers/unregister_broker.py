"""UnregisterBroker (key 64), version 0: forget a broker that does not come back. Root only.

Unlike Kafka's, refused (42) while the broker holds replicas: they would be lost without a word.
"""

from __future__ import annotations

from broker_engine.errors import BrokerError, ErrorCode
from broker_engine.handlers.api import Api, Call, Scope
from broker_engine.metadata.controller import unregister_broker
from broker_engine.wire.messages.unregister_broker import UnregisterBrokerRequest, UnregisterBrokerResponse


async def handle(request: UnregisterBrokerRequest, call: Call) -> UnregisterBrokerResponse:
    if not call.principal.is_root:
        raise BrokerError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, "brokers belong to the cluster")
    await call.broker.metadata.commit(lambda image: unregister_broker(image, request.broker_id))
    return UnregisterBrokerResponse(error_message=None)


def refuse(request: UnregisterBrokerRequest, error: BrokerError) -> UnregisterBrokerResponse:
    return UnregisterBrokerResponse(error_code=error.code, error_message=error.message or None)


API = Api(request=UnregisterBrokerRequest, scope=Scope.NAMELESS, handle=handle, refuse=refuse, is_for_controller=True)
