"""TxnOffsetCommit (key 28), versions 0-5: offsets of a group that become so when the producer's transaction commits.

From v3 with the member; from v4 a client knows TRANSACTION_ABORTABLE; v5 is sent by clients of transactions version 2,
who do not add the group to the transaction before.
"""

from __future__ import annotations

from broker_engine.wire.api import declare
from broker_engine.wire.kinds import Array, Int16, Int32, Int64, String
from broker_engine.wire.schema import Message, Struct, field


class TxnOffsetCommitRequestPartition(Struct):
    partition_index: Int32 = 0
    committed_offset: Int64 = 0
    committed_leader_epoch: Int32 = field("2+", default=-1, ignorable=True)
    committed_metadata: String | None = None


class TxnOffsetCommitRequestTopic(Struct):
    name: String = ""
    partitions: Array[TxnOffsetCommitRequestPartition] = ()


class TxnOffsetCommitRequest(Message, versions="0-5", flexible="3+"):
    transactional_id: String = ""
    group_id: String = ""
    producer_id: Int64 = 0
    producer_epoch: Int16 = 0
    generation_id: Int32 = field("3+", default=-1)
    member_id: String = field("3+", default="")
    group_instance_id: String | None = field("3+", default=None)
    topics: Array[TxnOffsetCommitRequestTopic] = ()


class TxnOffsetCommitResponsePartition(Struct):
    partition_index: Int32 = 0
    error_code: Int16 = 0


class TxnOffsetCommitResponseTopic(Struct):
    name: String = ""
    partitions: Array[TxnOffsetCommitResponsePartition] = ()


class TxnOffsetCommitResponse(Message, versions="0-5", flexible="3+"):
    throttle_time_ms: Int32 = 0
    topics: Array[TxnOffsetCommitResponseTopic] = ()


API = declare(28, "TxnOffsetCommit", TxnOffsetCommitRequest, TxnOffsetCommitResponse)
