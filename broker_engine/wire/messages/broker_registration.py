"""BrokerRegistration (key 62), versions 0-4: a broker's process tells the controller that it is there.

Ours: the address of the node's controller listener, and a reason that the refused broker can print.
"""

from __future__ import annotations

from broker_engine.wire.api import declare
from broker_engine.wire.kinds import Array, Bool, Int16, Int32, Int64, String, UInt16, Uuid
from broker_engine.wire.primitives import NULL_UUID
from broker_engine.wire.schema import Message, Struct, default_of, field


class BrokerRegistrationListener(Struct):
    name: String = ""
    host: String = ""
    port: UInt16 = 0
    security_protocol: Int16 = 0


class BrokerRegistrationFeature(Struct):
    name: String = ""
    min_supported_version: Int16 = 0
    max_supported_version: Int16 = 0


class BrokerRegistrationController(Struct):
    host: String = ""
    port: UInt16 = 0


class BrokerRegistrationRequest(Message, versions="0-4", flexible="0+"):
    broker_id: Int32 = 0
    cluster_id: String = ""
    incarnation_id: Uuid = NULL_UUID
    listeners: Array[BrokerRegistrationListener] = ()
    features: Array[BrokerRegistrationFeature] = ()
    rack: String | None = ""
    is_migrating_zk_broker: Bool = field("1+", default=False)
    log_dirs: Array[Uuid] = field("2+", default=(), ignorable=True)
    previous_broker_epoch: Int64 = field("3+", default=-1, ignorable=True)
    controller_endpoint: BrokerRegistrationController = field(
        default=default_of(BrokerRegistrationController), tag=10000, ignorable=True
    )


class BrokerRegistrationResponse(Message, versions="0-4", flexible="0+"):
    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    broker_epoch: Int64 = -1
    error_message: String | None = field(default=None, tag=10000, ignorable=True)


API = declare(62, "BrokerRegistration", BrokerRegistrationRequest, BrokerRegistrationResponse, is_between_brokers=True)
