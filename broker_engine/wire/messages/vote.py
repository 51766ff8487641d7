"""Vote (key 52), versions 0-2: a voter asks for a vote, or from v2 (`pre_vote`) whether it would get one.

The names are those of v2: earlier versions of Kafka said candidate where the fields now say replica.
"""

from __future__ import annotations

from broker_engine.wire.api import declare
from broker_engine.wire.kinds import Array, Bool, Int16, Int32, Int64, String, UInt16, Uuid
from broker_engine.wire.primitives import NULL_UUID
from broker_engine.wire.schema import Message, Struct, field


class VotePartition(Struct):
    partition_index: Int32 = 0
    replica_epoch: Int32 = 0
    replica_id: Int32 = 0
    replica_directory_id: Uuid = field("1+", default=NULL_UUID, ignorable=True)
    voter_directory_id: Uuid = field("1+", default=NULL_UUID, ignorable=True)
    last_offset_epoch: Int32 = 0
    last_offset: Int64 = 0
    pre_vote: Bool = field("2+", default=False)


class VoteTopic(Struct):
    topic_name: String = ""
    partitions: Array[VotePartition] = ()


class VoteRequest(Message, versions="0-2", flexible="0+"):
    cluster_id: String | None = None
    voter_id: Int32 = field("1+", default=-1, ignorable=True)
    topics: Array[VoteTopic] = ()


class VotePartitionResult(Struct):
    partition_index: Int32 = 0
    error_code: Int16 = 0
    leader_id: Int32 = 0
    leader_epoch: Int32 = 0
    vote_granted: Bool = False


class VoteTopicResult(Struct):
    topic_name: String = ""
    partitions: Array[VotePartitionResult] = ()


class VoteNodeEndpoint(Struct):
    node_id: Int32 = 0
    host: String = ""
    port: UInt16 = 0


class VoteResponse(Message, versions="0-2", flexible="0+"):
    error_code: Int16 = 0
    topics: Array[VoteTopicResult] = ()
    node_endpoints: Array[VoteNodeEndpoint] = field("1+", default=(), tag=0, ignorable=True)


API = declare(52, "Vote", VoteRequest, VoteResponse, is_between_brokers=True)
