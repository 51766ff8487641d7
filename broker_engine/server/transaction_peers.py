"""Asks another broker, which coordinates a transaction, about the partitions of a batch: AddPartitionsToTxn from v4."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from broker_engine.client.errors import ConnectionFailed
from broker_engine.errors import ErrorCode
from broker_engine.server.peers import Peers
from broker_engine.transactions.transaction import Producer, TopicPartition
from broker_engine.wire.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)

log = logging.getLogger(__name__)

_LANE = "transactions"
_TIMEOUT_MS = 10_000


async def ask_peer(
    peers: Peers,
    node_id: int,
    transactional_id: str,
    producer: Producer,
    partitions: Sequence[TopicPartition],
    *,
    is_adding: bool,
) -> dict[TopicPartition, ErrorCode]:
    """By partition; NETWORK_EXCEPTION where it was not reached: whether they were added is not known then."""
    topics: dict[str, list[int]] = {}
    for topic, index in partitions:
        topics.setdefault(topic, []).append(index)
    transaction = AddPartitionsToTxnTransaction(
        transactional_id=transactional_id,
        producer_id=producer.id,
        producer_epoch=producer.epoch,
        verify_only=not is_adding,
        topics=[AddPartitionsToTxnTopic(name=name, partitions=indexes) for name, indexes in topics.items()],
    )
    request = AddPartitionsToTxnRequest(transactions=[transaction])
    try:
        response = await peers.ask(node_id, request, AddPartitionsToTxnResponse, lane=_LANE, timeout_ms=_TIMEOUT_MS)
    except ConnectionFailed as error:
        log.info("the coordinator of %s is not reached: %s", transactional_id, error.message)
        return dict.fromkeys(partitions, ErrorCode.NETWORK_EXCEPTION)
    return _codes(partitions, response)


def _codes(
    partitions: Sequence[TopicPartition], response: AddPartitionsToTxnResponse
) -> dict[TopicPartition, ErrorCode]:
    found = {
        (topic.name, each.partition_index): each.partition_error_code
        for result in response.results_by_transaction
        for topic in result.topic_results
        for each in topic.results_by_partition
    }
    default = response.error_code or ErrorCode.UNKNOWN_SERVER_ERROR
    return {place: ErrorCode(found.get(place, default)) for place in partitions}
