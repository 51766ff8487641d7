"""AlterPartition (key 56), versions 2-3: a partition's leader asks the controller to commit a new ISR.

A change is a compare-and-set on the leader epoch and the partition epoch. From v3 members come with broker epochs.
"""

from __future__ import annotations

from broker_engine.wire.api import declare
from broker_engine.wire.kinds import Array, Int8, Int16, Int32, Int64, Uuid
from broker_engine.wire.primitives import NULL_UUID
from broker_engine.wire.schema import Message, Struct, field


class AlterPartitionBrokerState(Struct):
    broker_id: Int32 = 0
    broker_epoch: Int64 = -1


class AlterPartitionPartition(Struct):
    partition_index: Int32 = 0
    leader_epoch: Int32 = 0
    new_isr: Array[Int32] = field("2", default=())
    new_isr_with_epochs: Array[AlterPartitionBrokerState] = field("3+", default=())
    leader_recovery_state: Int8 = 0
    partition_epoch: Int32 = 0


class AlterPartitionTopic(Struct):
    topic_id: Uuid = NULL_UUID
    partitions: Array[AlterPartitionPartition] = ()


class AlterPartitionRequest(Message, versions="2-3", flexible="0+"):
    broker_id: Int32 = 0
    broker_epoch: Int64 = -1
    topics: Array[AlterPartitionTopic] = ()


class AlterPartitionPartitionResult(Struct):
    partition_index: Int32 = 0
    error_code: Int16 = 0
    leader_id: Int32 = 0
    leader_epoch: Int32 = 0
    isr: Array[Int32] = ()
    leader_recovery_state: Int8 = 0
    partition_epoch: Int32 = 0


class AlterPartitionTopicResult(Struct):
    topic_id: Uuid = NULL_UUID
    partitions: Array[AlterPartitionPartitionResult] = ()


class AlterPartitionResponse(Message, versions="2-3", flexible="0+"):
    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    topics: Array[AlterPartitionTopicResult] = ()


API = declare(56, "AlterPartition", AlterPartitionRequest, AlterPartitionResponse, is_between_brokers=True)
