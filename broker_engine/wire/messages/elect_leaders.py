"""ElectLeaders (key 43), versions 0-2: `election_type` 0 elects the preferred leader, 1 an unclean one."""

from __future__ import annotations

from broker_engine.wire.api import declare
from broker_engine.wire.kinds import Array, Int8, Int16, Int32, String
from broker_engine.wire.schema import Message, Struct, field


class ElectLeadersTopicPartitions(Struct):
    topic: String = ""
    partitions: Array[Int32] = ()


class ElectLeadersRequest(Message, versions="0-2", flexible="2+"):
    election_type: Int8 = field("1+", default=0)
    topic_partitions: Array[ElectLeadersTopicPartitions] | None = ()
    timeout_ms: Int32 = 60000


class ElectLeadersPartitionResult(Struct):
    partition_id: Int32 = 0
    error_code: Int16 = 0
    error_message: String | None = ""


class ElectLeadersReplicaElectionResult(Struct):
    topic: String = ""
    partition_result: Array[ElectLeadersPartitionResult] = ()


class ElectLeadersResponse(Message, versions="0-2", flexible="2+"):
    throttle_time_ms: Int32 = 0
    error_code: Int16 = field("1+", default=0, ignorable=True)
    replica_election_results: Array[ElectLeadersReplicaElectionResult] = ()


API = declare(43, "ElectLeaders", ElectLeadersRequest, ElectLeadersResponse)
