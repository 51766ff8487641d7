"""DescribeCluster (key 60), versions 0-2. Fenced brokers are shown only when asked for (v2)."""

from __future__ import annotations

from broker_engine.wire.api import declare
from broker_engine.wire.kinds import Array, Bool, Int8, Int16, Int32, String
from broker_engine.wire.schema import Message, Struct, field


class DescribeClusterRequest(Message, versions="0-2", flexible="0+"):
    include_cluster_authorized_operations: Bool = False
    endpoint_type: Int8 = field("1+", default=1)
    include_fenced_brokers: Bool = field("2+", default=False)


class DescribeClusterBroker(Struct):
    broker_id: Int32 = 0
    host: String = ""
    port: Int32 = 0
    rack: String | None = None
    is_fenced: Bool = field("2+", default=False, ignorable=True)


class DescribeClusterResponse(Message, versions="0-2", flexible="0+"):
    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    error_message: String | None = None
    endpoint_type: Int8 = field("1+", default=1)
    cluster_id: String = ""
    controller_id: Int32 = -1
    brokers: Array[DescribeClusterBroker] = ()
    cluster_authorized_operations: Int32 = -2147483648


API = declare(60, "DescribeCluster", DescribeClusterRequest, DescribeClusterResponse)
