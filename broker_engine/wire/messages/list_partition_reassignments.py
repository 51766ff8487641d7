"""ListPartitionReassignments (key 46), version 0: the moves under way; a null list of topics asks for all."""

from __future__ import annotations

from broker_engine.wire.api import declare
from broker_engine.wire.kinds import Array, Int16, Int32, String
from broker_engine.wire.schema import Message, Struct


class ListPartitionReassignmentsTopics(Struct):
    name: String = ""
    partition_indexes: Array[Int32] = ()


class ListPartitionReassignmentsRequest(Message, versions="0", flexible="0+"):
    timeout_ms: Int32 = 60000
    topics: Array[ListPartitionReassignmentsTopics] | None = None


class OngoingPartitionReassignment(Struct):
    partition_index: Int32 = 0
    replicas: Array[Int32] = ()
    adding_replicas: Array[Int32] = ()
    removing_replicas: Array[Int32] = ()


class OngoingTopicReassignment(Struct):
    name: String = ""
    partitions: Array[OngoingPartitionReassignment] = ()


class ListPartitionReassignmentsResponse(Message, versions="0", flexible="0+"):
    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    error_message: String | None = ""
    topics: Array[OngoingTopicReassignment] = ()


API = declare(46, "ListPartitionReassignments", ListPartitionReassignmentsRequest, ListPartitionReassignmentsResponse)
