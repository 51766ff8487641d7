"""AddPartitionsToTxn (key 24), versions 0-5.

Up to v3 a producer's own, for one transaction. From v4 brokers' among themselves: several transactions, each to be
added to or only looked up (KIP-890).
"""

from __future__ import annotations

from broker_engine.wire.api import declare
from broker_engine.wire.kinds import Array, Bool, Int16, Int32, Int64, String
from broker_engine.wire.schema import Message, Struct, field


class AddPartitionsToTxnTopic(Struct):
    name: String = ""
    partitions: Array[Int32] = ()


class AddPartitionsToTxnTransaction(Struct):
    transactional_id: String = ""
    producer_id: Int64 = 0
    producer_epoch: Int16 = 0
    verify_only: Bool = False
    topics: Array[AddPartitionsToTxnTopic] = ()


class AddPartitionsToTxnRequest(Message, versions="0-5", flexible="3+"):
    transactions: Array[AddPartitionsToTxnTransaction] = field("4+", default=())
    v3_and_below_transactional_id: String = field("0-3", default="")
    v3_and_below_producer_id: Int64 = field("0-3", default=0)
    v3_and_below_producer_epoch: Int16 = field("0-3", default=0)
    v3_and_below_topics: Array[AddPartitionsToTxnTopic] = field("0-3", default=())


class AddPartitionsToTxnPartitionResult(Struct):
    partition_index: Int32 = 0
    partition_error_code: Int16 = 0


class AddPartitionsToTxnTopicResult(Struct):
    name: String = ""
    results_by_partition: Array[AddPartitionsToTxnPartitionResult] = ()


class AddPartitionsToTxnResult(Struct):
    transactional_id: String = ""
    topic_results: Array[AddPartitionsToTxnTopicResult] = ()


class AddPartitionsToTxnResponse(Message, versions="0-5", flexible="3+"):
    throttle_time_ms: Int32 = 0
    error_code: Int16 = field("4+", default=0, ignorable=True)
    results_by_transaction: Array[AddPartitionsToTxnResult] = field("4+", default=(), ignorable=True)
    results_by_topic_v3_and_below: Array[AddPartitionsToTxnTopicResult] = field("0-3", default=(), ignorable=True)


API = declare(24, "AddPartitionsToTxn", AddPartitionsToTxnRequest, AddPartitionsToTxnResponse)
