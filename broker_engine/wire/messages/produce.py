"""Produce (key 0), versions 3-13.

Names up to v12, topic ids from v13. Kafka advertises 0-2 as well, and closes the connection on them.
"""

from __future__ import annotations

from broker_engine.wire.api import declare
from broker_engine.wire.kinds import Array, Int16, Int32, Int64, Records, String, Uuid
from broker_engine.wire.primitives import NULL_UUID
from broker_engine.wire.schema import Message, Struct, default_of, field


class PartitionProduceData(Struct):
    index: Int32 = 0
    records: Records | None = None


class TopicProduceData(Struct):
    name: String = field("3-12", default="", ignorable=True)
    topic_id: Uuid = field("13+", default=NULL_UUID, ignorable=True)
    partition_data: Array[PartitionProduceData] = ()


class ProduceRequest(Message, versions="3-13", flexible="9+"):
    transactional_id: String | None = None
    acks: Int16 = 0
    timeout_ms: Int32 = 0
    topic_data: Array[TopicProduceData] = ()


class BatchIndexAndErrorMessage(Struct):
    batch_index: Int32 = 0
    batch_index_error_message: String | None = None


class LeaderIdAndEpoch(Struct):
    leader_id: Int32 = -1
    leader_epoch: Int32 = -1


class PartitionProduceResponse(Struct):
    index: Int32 = 0
    error_code: Int16 = 0
    base_offset: Int64 = 0
    log_append_time_ms: Int64 = -1
    log_start_offset: Int64 = field("5+", default=-1, ignorable=True)
    record_errors: Array[BatchIndexAndErrorMessage] = field("8+", default=(), ignorable=True)
    error_message: String | None = field("8+", default=None, ignorable=True)
    current_leader: LeaderIdAndEpoch = field("10+", default=default_of(LeaderIdAndEpoch), tag=0)


class TopicProduceResponse(Struct):
    name: String = field("3-12", default="", ignorable=True)
    topic_id: Uuid = field("13+", default=NULL_UUID, ignorable=True)
    partition_responses: Array[PartitionProduceResponse] = ()


class NodeEndpoint(Struct):
    node_id: Int32 = 0
    host: String = ""
    port: Int32 = 0
    rack: String | None = None


class ProduceResponse(Message, versions="3-13", flexible="9+"):
    responses: Array[TopicProduceResponse] = ()
    throttle_time_ms: Int32 = 0
    node_endpoints: Array[NodeEndpoint] = field("10+", default=(), tag=0)


API = declare(0, "Produce", ProduceRequest, ProduceResponse)
