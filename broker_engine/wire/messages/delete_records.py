"""DeleteRecords (key 21), versions 0-2. Offset -1 means the high watermark."""

from __future__ import annotations

from broker_engine.wire.api import declare
from broker_engine.wire.kinds import Array, Int16, Int32, Int64, String
from broker_engine.wire.schema import Message, Struct


class DeleteRecordsPartition(Struct):
    partition_index: Int32 = 0
    offset: Int64 = 0


class DeleteRecordsTopic(Struct):
    name: String = ""
    partitions: Array[DeleteRecordsPartition] = ()


class DeleteRecordsRequest(Message, versions="0-2", flexible="2+"):
    topics: Array[DeleteRecordsTopic] = ()
    timeout_ms: Int32 = 0


class DeleteRecordsPartitionResult(Struct):
    partition_index: Int32 = 0
    low_watermark: Int64 = 0
    error_code: Int16 = 0


class DeleteRecordsTopicResult(Struct):
    name: String = ""
    partitions: Array[DeleteRecordsPartitionResult] = ()


class DeleteRecordsResponse(Message, versions="0-2", flexible="2+"):
    throttle_time_ms: Int32 = 0
    topics: Array[DeleteRecordsTopicResult] = ()


API = declare(21, "DeleteRecords", DeleteRecordsRequest, DeleteRecordsResponse)
