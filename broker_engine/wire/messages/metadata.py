"""Metadata (key 3), versions 0-13.

A null topic list asks for all from v1, an empty one in v0. Topic ids from v10, error_code (re-bootstrap) in v13.
"""

from __future__ import annotations

from broker_engine.wire.api import declare
from broker_engine.wire.kinds import Array, Bool, Int16, Int32, String, Uuid
from broker_engine.wire.primitives import NULL_UUID
from broker_engine.wire.schema import Message, Struct, field


class MetadataRequestTopic(Struct):
    topic_id: Uuid = field("10+", default=NULL_UUID, ignorable=True)
    name: String | None = field(default="", nullable="10+")


class MetadataRequest(Message, versions="0-13", flexible="9+"):
    topics: Array[MetadataRequestTopic] | None = field(default=(), nullable="1+")
    allow_auto_topic_creation: Bool = field("4+", default=True)
    include_cluster_authorized_operations: Bool = field("8-10", default=False)
    include_topic_authorized_operations: Bool = field("8+", default=False)


class MetadataResponseBroker(Struct):
    node_id: Int32 = 0
    host: String = ""
    port: Int32 = 0
    rack: String | None = field("1+", default=None, ignorable=True)


class MetadataResponsePartition(Struct):
    error_code: Int16 = 0
    partition_index: Int32 = 0
    leader_id: Int32 = 0
    leader_epoch: Int32 = field("7+", default=-1, ignorable=True)
    replica_nodes: Array[Int32] = ()
    isr_nodes: Array[Int32] = ()
    offline_replicas: Array[Int32] = field("5+", default=(), ignorable=True)


class MetadataResponseTopic(Struct):
    error_code: Int16 = 0
    name: String | None = field(default="", nullable="12+")
    topic_id: Uuid = field("10+", default=NULL_UUID, ignorable=True)
    is_internal: Bool = field("1+", default=False, ignorable=True)
    partitions: Array[MetadataResponsePartition] = ()
    topic_authorized_operations: Int32 = field("8+", default=-2147483648)


class MetadataResponse(Message, versions="0-13", flexible="9+"):
    throttle_time_ms: Int32 = field("3+", default=0, ignorable=True)
    brokers: Array[MetadataResponseBroker] = ()
    cluster_id: String | None = field("2+", default=None, ignorable=True)
    controller_id: Int32 = field("1+", default=-1, ignorable=True)
    topics: Array[MetadataResponseTopic] = ()
    cluster_authorized_operations: Int32 = field("8-10", default=-2147483648)
    error_code: Int16 = field("13+", default=0, ignorable=True)


API = declare(3, "Metadata", MetadataRequest, MetadataResponse)
