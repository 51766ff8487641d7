"""ReplicaEnds (key 10006, private), version 0: the controller asks a broker how far its logs of some partitions go."""

from __future__ import annotations

from broker_engine.wire.api import declare
from broker_engine.wire.kinds import Array, Int16, Int32, Int64, Uuid
from broker_engine.wire.primitives import NULL_UUID
from broker_engine.wire.schema import Message, Struct


class ReplicaEndsTopic(Struct):
    topic_id: Uuid = NULL_UUID
    partitions: Array[Int32] = ()


class ReplicaEndsRequest(Message, versions="0"):
    topics: Array[ReplicaEndsTopic] = ()


class ReplicaEndsPartition(Struct):
    partition_index: Int32 = 0
    last_epoch: Int32 = -1
    end_offset: Int64 = 0


class ReplicaEndsTopicResult(Struct):
    topic_id: Uuid = NULL_UUID
    partitions: Array[ReplicaEndsPartition] = ()


class ReplicaEndsResponse(Message, versions="0"):
    error_code: Int16 = 0
    broker_epoch: Int64 = -1
    topics: Array[ReplicaEndsTopicResult] = ()


API = declare(10006, "ReplicaEnds", ReplicaEndsRequest, ReplicaEndsResponse, is_internal=True)
