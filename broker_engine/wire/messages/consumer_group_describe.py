"""ConsumerGroupDescribe (key 69), versions 0-1. Version 1 says which protocol each member speaks."""

from __future__ import annotations

from broker_engine.wire.api import declare
from broker_engine.wire.kinds import Array, Bool, Int8, Int16, Int32, String, Uuid
from broker_engine.wire.primitives import NULL_UUID
from broker_engine.wire.schema import Message, Struct, field


class ConsumerGroupDescribeRequest(Message, versions="0-1", flexible="0+"):
    group_ids: Array[String] = ()
    include_authorized_operations: Bool = False


class DescribedTopicPartitions(Struct):
    topic_id: Uuid = NULL_UUID
    topic_name: String = ""
    partitions: Array[Int32] = ()


class DescribedAssignment(Struct):
    topic_partitions: Array[DescribedTopicPartitions] = ()


class DescribedConsumerMember(Struct):
    member_id: String = ""
    instance_id: String | None = None
    rack_id: String | None = None
    member_epoch: Int32 = 0
    client_id: String = ""
    client_host: String = ""
    subscribed_topic_names: Array[String] = ()
    subscribed_topic_regex: String | None = None
    assignment: DescribedAssignment = DescribedAssignment()
    target_assignment: DescribedAssignment = DescribedAssignment()
    member_type: Int8 = field("1+", default=-1, ignorable=True)


class DescribedConsumerGroup(Struct):
    error_code: Int16 = 0
    error_message: String | None = None
    group_id: String = ""
    group_state: String = ""
    group_epoch: Int32 = 0
    assignment_epoch: Int32 = 0
    assignor_name: String = ""
    members: Array[DescribedConsumerMember] = ()
    authorized_operations: Int32 = -2147483648


class ConsumerGroupDescribeResponse(Message, versions="0-1", flexible="0+"):
    throttle_time_ms: Int32 = 0
    groups: Array[DescribedConsumerGroup] = ()


API = declare(69, "ConsumerGroupDescribe", ConsumerGroupDescribeRequest, ConsumerGroupDescribeResponse)
