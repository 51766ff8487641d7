"""CreateTopics (key 19), versions 2-7.

-1 partitions or replicas asks for the broker's default (v4 and up); details of the new topic from v5, its id in v7.
"""

from __future__ import annotations

from broker_engine.wire.api import declare
from broker_engine.wire.kinds import Array, Bool, Int8, Int16, Int32, String, Uuid
from broker_engine.wire.primitives import NULL_UUID
from broker_engine.wire.schema import Message, Struct, field


class CreatableReplicaAssignment(Struct):
    partition_index: Int32 = 0
    broker_ids: Array[Int32] = ()


class CreatableTopicConfig(Struct):
    name: String = ""
    value: String | None = ""


class CreatableTopic(Struct):
    name: String = ""
    num_partitions: Int32 = 0
    replication_factor: Int16 = 0
    assignments: Array[CreatableReplicaAssignment] = ()
    configs: Array[CreatableTopicConfig] = ()


class CreateTopicsRequest(Message, versions="2-7", flexible="5+"):
    topics: Array[CreatableTopic] = ()
    timeout_ms: Int32 = 60000
    validate_only: Bool = False


class CreatableTopicConfigs(Struct):
    name: String = ""
    value: String | None = ""
    read_only: Bool = False
    config_source: Int8 = -1
    is_sensitive: Bool = False


class CreatableTopicResult(Struct):
    name: String = ""
    topic_id: Uuid = field("7+", default=NULL_UUID, ignorable=True)
    error_code: Int16 = 0
    error_message: String | None = ""
    topic_config_error_code: Int16 = field("5+", default=0, tag=0, ignorable=True)
    num_partitions: Int32 = field("5+", default=-1, ignorable=True)
    replication_factor: Int16 = field("5+", default=-1, ignorable=True)
    configs: Array[CreatableTopicConfigs] | None = field("5+", default=(), ignorable=True)


class CreateTopicsResponse(Message, versions="2-7", flexible="5+"):
    throttle_time_ms: Int32 = 0
    topics: Array[CreatableTopicResult] = ()


API = declare(19, "CreateTopics", CreateTopicsRequest, CreateTopicsResponse)
