"""DescribeProducers (key 61), version 0: who writes to a partition, and where its open transaction began."""

from __future__ import annotations

from broker_engine.wire.api import declare
from broker_engine.wire.kinds import Array, Int16, Int32, Int64, String
from broker_engine.wire.schema import Message, Struct


class TopicRequest(Struct):
    name: String = ""
    partition_indexes: Array[Int32] = ()


class DescribeProducersRequest(Message, versions="0", flexible="0+"):
    topics: Array[TopicRequest] = ()


class ProducerState(Struct):
    producer_id: Int64 = 0
    producer_epoch: Int32 = 0
    last_sequence: Int32 = -1
    last_timestamp: Int64 = -1
    coordinator_epoch: Int32 = 0
    current_txn_start_offset: Int64 = -1


class PartitionResponse(Struct):
    partition_index: Int32 = 0
    error_code: Int16 = 0
    error_message: String | None = None
    active_producers: Array[ProducerState] = ()


class TopicResponse(Struct):
    name: String = ""
    partitions: Array[PartitionResponse] = ()


class DescribeProducersResponse(Message, versions="0", flexible="0+"):
    throttle_time_ms: Int32 = 0
    topics: Array[TopicResponse] = ()


API = declare(61, "DescribeProducers", DescribeProducersRequest, DescribeProducersResponse)
