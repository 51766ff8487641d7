"""Writes a group's offsets as a part of a producer's transaction, into the group's partition of `__consumer_offsets`.

They are pending from their acknowledgement to the transaction's marker (groups/pending_offsets.py). Acknowledgements
come in the order of the log, so a marker always finds them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import NamedTuple

from broker_engine.errors import BrokerError, ErrorCode
from broker_engine.groups.shard import GroupShard, NewOffset
from broker_engine.partition.verification import Guard
from broker_engine.records.builder import NewRecord, build_batch
from broker_engine.records.header import BatchHeader, parse_header
from broker_engine.server.markers import append_in_transaction
from broker_engine.server.shards import Loaded, acked

_IN_GROUP_WORDS = {
    ErrorCode.NOT_LEADER_OR_FOLLOWER: ErrorCode.NOT_COORDINATOR,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ErrorCode.NOT_COORDINATOR,
    ErrorCode.KAFKA_STORAGE_ERROR: ErrorCode.NOT_COORDINATOR,
    ErrorCode.NOT_ENOUGH_REPLICAS: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.REQUEST_TIMED_OUT: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.MESSAGE_TOO_LARGE: ErrorCode.INVALID_COMMIT_OFFSET_SIZE,
}


class Producer(NamedTuple):
    id: int
    epoch: int


def begin_verification(loaded: Loaded[GroupShard], producer: Producer, *, is_adding: bool) -> Guard | None:
    """None where the producer's transaction is open in this partition: its coordinator was asked before."""
    producers = loaded.local.core.producers
    if producers.is_open(producer.id, producer.epoch):
        return None
    return producers.verifications.begin(_header_of(producer), is_adding=is_adding)


async def commit_in_transaction(
    loaded: Loaded[GroupShard],
    name: str,
    offsets: Sequence[NewOffset],
    producer: Producer,
    *,
    guard: Guard | None,
    now_ms: int,
) -> ErrorCode:
    """NONE once the offsets are acknowledged, as pending ones."""
    records = loaded.shard.offset_records(name, offsets, now_ms)
    batch = _batch([NewRecord(now_ms, record.key, record.value) for record in records], producer)
    done: asyncio.Future[ErrorCode] = asyncio.get_running_loop().create_future()
    end = loaded.shard.begin_commit(name)

    def on_acked(code: ErrorCode) -> None:
        end()
        if code is ErrorCode.NONE:
            for record in records:
                loaded.shard.replay_in_transaction(producer.id, record.key, record.value)
        if not done.done():
            done.set_result(_IN_GROUP_WORDS.get(code, code))

    try:
        loaded.local.when_acked(append_in_transaction(loaded.local, batch, guard), on_acked)
    except BrokerError as error:
        end()
        return _IN_GROUP_WORDS.get(error.code, error.code)
    return await acked(done)


def _batch(records: Sequence[NewRecord], producer: Producer) -> bytes:
    return build_batch(records, producer_id=producer.id, producer_epoch=producer.epoch, is_transactional=True)


def _header_of(producer: Producer) -> BatchHeader:
    return parse_header(_batch([NewRecord(0, None, None)], producer))
