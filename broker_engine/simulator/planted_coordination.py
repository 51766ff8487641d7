"""Bugs of groups and transactions, for `planted.py`: each function stands in the place of another."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any
from uuid import UUID

from broker_engine.errors import BrokerError, ErrorCode
from broker_engine.groups.consumer import reconcile
from broker_engine.groups.consumer.commits import CommitAsk
from broker_engine.groups.consumer.group import ConsumerGroup
from broker_engine.groups.pending_offsets import PendingOffsets
from broker_engine.partition.core import ACKS_ALL
from broker_engine.partition.replica import ReplicaCore
from broker_engine.records.builder import NewRecord, build_batch
from broker_engine.server.markers import Marker
from broker_engine.server.shards import Loaded, Pair, Shards
from broker_engine.server.transaction_coordinator import TransactionCoordinator
from broker_engine.transactions import core
from broker_engine.transactions.core import Verdict
from broker_engine.transactions.shard import TransactionShard
from broker_engine.transactions.states import TransactionState
from broker_engine.transactions.transaction import Producer, Transaction

_PRODUCE_VERSION = 11

# --- both coordinators


def write_answered_at_once(
    self: Shards[Any],
    loaded: Loaded[Any],
    records: Sequence[Pair],
    *,
    is_replayed: bool = True,
    on_settled: Callable[[ErrorCode], None] = lambda code: None,
) -> asyncio.Future[ErrorCode]:
    done: asyncio.Future[ErrorCode] = asyncio.get_running_loop().create_future()
    batch = build_batch([NewRecord(self._broker.clock.now_ms(), *pair) for pair in records])
    try:
        loaded.local.append(memoryview(batch), produce_version=_PRODUCE_VERSION, acks=ACKS_ALL)
    except BrokerError as error:
        on_settled(error.code)
        done.set_result(error.code)
        return done
    if is_replayed:
        self._owner.replay_written(loaded.shard, records)
    on_settled(ErrorCode.NONE)
    done.set_result(ErrorCode.NONE)
    return done


def find_while_loading(self: Shards[Any], key: str) -> Loaded[Any]:
    index = self.partition_of(key)
    if index is None:
        raise BrokerError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    loaded = self._loaded.get(index)
    if loaded is None or not loaded.local.is_leader or self._broker.is_self_fenced:
        raise BrokerError(ErrorCode.NOT_COORDINATOR)
    return loaded


# --- groups


def any_generation_may_commit(
    self: Any, member_id: str, instance_id: str | None, generation: int, now_ms: int
) -> ErrorCode:
    return ErrorCode.NONE


def any_epoch_may_commit(group: ConsumerGroup, ask: CommitAsk, now_ms: int) -> ErrorCode:
    return ErrorCode.NONE


def give_what_another_has(
    kept: Mapping[UUID, Mapping[int, int]], goal: Any, is_free: Callable[[UUID, int], bool]
) -> Any:
    return _give(kept, goal, lambda topic_id, index: True)


_give = reconcile._given

# --- transactions


def stable_to_the_end(self: ReplicaCore) -> int:
    return self.high_watermark


def abort_in_the_same_epoch(known: Transaction, now_ms: int, spare_id: int | None) -> Verdict:
    return Verdict(store=known.moved(TransactionState.PREPARE_ABORT, now_ms))


def any_epoch_may_end(known: Transaction | None, producer: Producer, *, is_version_2: bool) -> ErrorCode:
    is_known = known is not None and known.producer_id == producer.id
    return ErrorCode.NONE if is_known else ErrorCode.INVALID_PRODUCER_ID_MAPPING


def same_epoch_again(
    known: Transaction, ask: core.InitAsk, now_ms: int, spare_id: int | None, *, last_epoch: int
) -> Verdict:
    return Verdict(producer=known.producer, store=known.moved(TransactionState.EMPTY, now_ms, partitions=()))


def abort_what_was_decided(self: TransactionCoordinator, loaded: Loaded[TransactionShard], record_count: int) -> None:
    """A new coordinator ends what its predecessor had decided, but not as it had decided."""
    for transaction in list(loaded.shard.preparing()):
        marker = Marker(
            producer_id=transaction.producer_id,
            producer_epoch=transaction.producer_epoch,
            is_commit=False,
            coordinator_epoch=loaded.leader_epoch,
            partitions=transaction.partitions,
            transaction_version=transaction.client_version,
        )
        self._markers.send(marker, loaded, lambda done=transaction: self._complete(loaded, done))  # type: ignore[misc]


def leave_what_was_decided(self: TransactionCoordinator, loaded: Loaded[TransactionShard], record_count: int) -> None:
    """A new coordinator does not carry out what its predecessor had decided."""


def apply_aborted_offsets(self: Any, producer_id: int, *, is_commit: bool) -> Any:
    return _end_pending(self, producer_id, is_commit=True)


_end_pending = PendingOffsets.end
