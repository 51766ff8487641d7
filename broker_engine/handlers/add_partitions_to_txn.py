"""AddPartitionsToTxn (key 24). Versions 0-3 for producers: all partitions are added, or none; where one is unknown (3)
the others are not attempted (55). Versions 4-5 from broker to broker, on the controller's listener (NODE_API): several
transactions at once, whose partitions are added (transaction version 2) or only looked up.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence

from broker_engine.errors import BrokerError, ErrorCode
from broker_engine.handlers.api import Api, Call, Scope
from broker_engine.handlers.topics import topic_by_name
from broker_engine.handlers.transactions import code_for, transaction_name
from broker_engine.metadata.image import TopicImage
from broker_engine.names import from_wire, physical
from broker_engine.transactions.transaction import Producer, TopicPartition
from broker_engine.wire.messages.add_partitions_to_txn import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTopicResult,
    AddPartitionsToTxnTransaction,
)

LAST_CLIENT_VERSION = 3
_FIRST_VERSION_WITH_FENCED = 2
_FIRST_VERSION_WITH_ABORTABLE = 5

Topics = Sequence[AddPartitionsToTxnTopic]
CodeOf = Callable[[str, int], int]
"""(topic as asked, partition) -> code."""


# --- producers


async def handle(request: AddPartitionsToTxnRequest, call: Call) -> AddPartitionsToTxnResponse:
    name = transaction_name(call, request.v3_and_below_transactional_id)
    topics = request.v3_and_below_topics
    code_of = _unknown_partitions(topics, call)
    if code_of is None:
        producer = Producer(request.v3_and_below_producer_id, request.v3_and_below_producer_epoch)
        added = await call.broker.transactions.add_partitions(name, producer, list(_places(topics, call)))
        code = code_for(added, call.version, first_version_with_fenced=_FIRST_VERSION_WITH_FENCED)
        code_of = _same(code)
    return AddPartitionsToTxnResponse(results_by_topic_v3_and_below=_results(topics, code_of))


def refuse(request: AddPartitionsToTxnRequest, error: BrokerError) -> AddPartitionsToTxnResponse:
    code_of = _same(error.code)
    return AddPartitionsToTxnResponse(
        error_code=error.code,
        results_by_topic_v3_and_below=_results(request.v3_and_below_topics, code_of),
        results_by_transaction=[_answer(each, code_of) for each in request.transactions],
    )


# --- brokers


async def handle_nodes(request: AddPartitionsToTxnRequest, call: Call) -> AddPartitionsToTxnResponse:
    if call.version <= LAST_CLIENT_VERSION:
        return await handle(request, call)
    results = await asyncio.gather(*(_one(each, call) for each in request.transactions))
    return AddPartitionsToTxnResponse(results_by_transaction=results)


async def _one(asked: AddPartitionsToTxnTransaction, call: Call) -> AddPartitionsToTxnResult:
    try:
        name = transaction_name(call, asked.transactional_id)
    except BrokerError as error:
        return _answer(asked, _same(error.code))
    unknown = None if asked.verify_only else _unknown_partitions(asked.topics, call)
    if unknown is not None:
        return _answer(asked, unknown)
    codes = await call.broker.transactions.verify_here(
        name,
        Producer(asked.producer_id, asked.producer_epoch),
        list(_places(asked.topics, call)),
        is_adding=not asked.verify_only,
    )

    def code_of(topic: str, index: int) -> int:
        code = codes[_text(topic, call), index]
        is_old = call.version < _FIRST_VERSION_WITH_ABORTABLE and code is ErrorCode.TRANSACTION_ABORTABLE
        return ErrorCode.INVALID_TXN_STATE if is_old else code

    return _answer(asked, code_of)


def _answer(asked: AddPartitionsToTxnTransaction, code_of: CodeOf) -> AddPartitionsToTxnResult:
    return AddPartitionsToTxnResult(
        transactional_id=asked.transactional_id, topic_results=_results(asked.topics, code_of)
    )


# --- both


def _unknown_partitions(topics: Topics, call: Call) -> CodeOf | None:
    """The codes where a partition is not there; None where all are."""
    known = {topic.name: topic_by_name(call, topic.name) for topic in topics}
    if all(_has(known[topic.name], index) for topic in topics for index in topic.partitions):
        return None
    return lambda topic, index: (
        ErrorCode.OPERATION_NOT_ATTEMPTED if _has(known[topic], index) else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    )


def _has(topic: TopicImage | None, index: int) -> bool:
    return topic is not None and index in topic.partitions


def _places(topics: Topics, call: Call) -> Iterable[TopicPartition]:
    return ((_text(topic.name, call), index) for topic in topics for index in topic.partitions)


def _text(topic: str, call: Call) -> str:
    return physical(from_wire(topic, call.tenant))


def _same(code: ErrorCode) -> CodeOf:
    return lambda topic, index: code


def _results(topics: Topics, code_of: CodeOf) -> list[AddPartitionsToTxnTopicResult]:
    return [
        AddPartitionsToTxnTopicResult(
            name=topic.name,
            results_by_partition=[
                AddPartitionsToTxnPartitionResult(
                    partition_index=index, partition_error_code=code_of(topic.name, index)
                )
                for index in topic.partitions
            ],
        )
        for topic in topics
    ]


API = Api(
    request=AddPartitionsToTxnRequest,
    scope=Scope.TRANSACTIONS,
    handle=handle,
    refuse=refuse,
    max_version=LAST_CLIENT_VERSION,
)
NODE_API = Api(
    request=AddPartitionsToTxnRequest, scope=Scope.BROKERS, handle=handle_nodes, refuse=refuse, is_next_allowed=True
)
