"""ConsumerGroupHeartbeat (key 68), versions 0-1: join, stay and leave in one API (KIP-848). Null means: as before."""

from __future__ import annotations

from broker_engine.wire.api import declare
from broker_engine.wire.kinds import Array, Int16, Int32, String, Uuid
from broker_engine.wire.primitives import NULL_UUID
from broker_engine.wire.schema import Message, Struct, field


class HeartbeatTopicPartitions(Struct):
    topic_id: Uuid = NULL_UUID
    partitions: Array[Int32] = ()


class ConsumerGroupHeartbeatRequest(Message, versions="0-1", flexible="0+"):
    group_id: String = ""
    member_id: String = ""
    member_epoch: Int32 = 0
    instance_id: String | None = None
    rack_id: String | None = None
    rebalance_timeout_ms: Int32 = -1
    subscribed_topic_names: Array[String] | None = None
    subscribed_topic_regex: String | None = field("1+", default=None)
    server_assignor: String | None = None
    topic_partitions: Array[HeartbeatTopicPartitions] | None = None


class HeartbeatAssignment(Struct):
    topic_partitions: Array[HeartbeatTopicPartitions] = ()


class ConsumerGroupHeartbeatResponse(Message, versions="0-1", flexible="0+"):
    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    error_message: String | None = None
    member_id: String | None = None
    member_epoch: Int32 = 0
    heartbeat_interval_ms: Int32 = 0
    assignment: HeartbeatAssignment | None = None


API = declare(68, "ConsumerGroupHeartbeat", ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse)
