"""Coordinates the transactions whose ids fall on the partitions of `__transaction_state` that this broker leads.

Each such partition is a shard (shards.py). The core decides; here its decision is stored with acks=all, then shown and
answered. A stored end of a transaction sends its markers (transaction_markers.py), and is stored as complete when every
partition has one. What a predecessor had decided is carried out by whoever leads next. Left out: two-phase commit.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Protocol

from broker_engine.errors import BrokerError, ErrorCode
from broker_engine.handlers.write_txn_markers import write_markers
from broker_engine.metadata.topics import TRANSACTIONS_TOPIC
from broker_engine.names import TRANSACTION_STATE
from broker_engine.server.markers import Marker
from broker_engine.server.shards import Loaded, Pair, Shards, StoredBatch, acked
from broker_engine.server.supervisor import Supervisor
from broker_engine.server.transaction_markers import MarkerSender
from broker_engine.server.transaction_peers import ask_peer
from broker_engine.transactions import core
from broker_engine.transactions.core import InitAsk, Verdict
from broker_engine.transactions.records import UnknownTransactionRecord
from broker_engine.transactions.shard import TransactionShard
from broker_engine.transactions.transaction import VERSION_2, Producer, TopicPartition, Transaction

if TYPE_CHECKING:
    from broker_engine.metadata.image import MetadataImage
    from broker_engine.server.broker import Broker

log = logging.getLogger(__name__)

_COMPLETE_AGAIN_S = 0.2
_ABORTS_AT_ONCE = 100
_REMOVALS_AT_ONCE = 500

Here = Loaded[TransactionShard]
Codes = dict[TopicPartition, ErrorCode]


class _Decide(Protocol):
    def __call__(self, known: Transaction | None, *, is_pending: bool, spare_id: int | None) -> Verdict: ...


class TransactionCoordinator:
    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._config = broker.config
        self._tasks = Supervisor()
        self._shards: Shards[TransactionShard] = Shards(
            broker,
            TRANSACTIONS_TOPIC,
            self,
            self._tasks,
            too_large=ErrorCode.UNKNOWN_SERVER_ERROR,
            # A marker cannot be taken back: no outcome is carried out that a later leader may not know of.
            is_committed_first=True,
        )
        self._markers = MarkerSender(broker, self._tasks, write_markers)

    # --- which ids

    def partition_of(self, transactional_id: str) -> int | None:
        return self._shards.partition_of(transactional_id)

    def node_of(self, transactional_id: str) -> int | None:
        """The broker that coordinates it; None while there is none."""
        return self._shards.node_of(transactional_id)

    def ensure_topic(self) -> None:
        self._shards.ensure_topic()

    def follow(self, old: MetadataImage, new: MetadataImage) -> None:
        self._shards.follow(old, new)
        self._markers.follow(old, new)

    def start(self) -> None:
        """The broker serves."""
        self._shards.start()
        self._tasks.keep_running(self._abort_overdue, "transactions that take too long")
        self._tasks.keep_running(self._expire, "expiry of transactional ids")

    def look_again(self) -> None:
        """A partition of ours was opened late."""
        self._shards.look_again()

    async def stop(self) -> None:
        """Whoever leads next carries on."""
        self._shards.stop()
        self._markers.stop()
        await self._tasks.stop()

    def find(self, transactional_id: str) -> Transaction | None:
        """BrokerError 14, 15 or 16: ask again, maybe elsewhere."""
        return self._shards.find(transactional_id).shard.find(transactional_id)

    def all(self) -> Iterator[Transaction]:
        """Of every id that is coordinated here. BrokerError 14 while some are being loaded."""
        for loaded in self._shards.all():
            yield from loaded.shard.transactions.values()

    def open_for_ms(self, transaction: Transaction) -> int:
        """By the wall clock, for those who look."""
        return max(0, self._broker.clock.now_ms() - transaction.started_ms)

    # --- what shards.py asks

    def new_shard(self) -> TransactionShard:
        return TransactionShard()

    def replay_stored(self, shard: TransactionShard, batch: StoredBatch) -> None:
        for key, value in batch.pairs:
            try:
                shard.replay(key, value, self._now_ms())
            except UnknownTransactionRecord as error:
                log.warning("a record of %s is passed over: %s", TRANSACTION_STATE, error)

    def replay_written(self, shard: TransactionShard, records: Sequence[Pair]) -> None:
        raise AssertionError("what is written here settles by itself")

    def on_loaded(self, loaded: Here, record_count: int) -> None:
        preparing = list(loaded.shard.preparing())
        for transaction in preparing:
            self._send_markers(loaded, transaction)
        if record_count:
            text = "%s-%d: %d transactional ids from %d records, %d to be completed"
            count = len(loaded.shard.transactions)
            log.info(text, TRANSACTION_STATE, loaded.index, count, record_count, len(preparing))

    def on_dropped(self, loaded: Here) -> None:
        self._markers.forget(loaded)

    # --- requests

    async def init_producer_id(self, ask: InitAsk) -> Verdict:
        if not 0 < ask.timeout_ms <= self._config.transaction_max_timeout_ms:
            return Verdict(ErrorCode.INVALID_TRANSACTION_TIMEOUT)
        self._shards.find(ask.transactional_id).shard.check_new(ask.transactional_id)

        def decide(known: Transaction | None, *, is_pending: bool, spare_id: int | None) -> Verdict:
            return core.init_producer_id(known, ask, self._wall_ms(), is_pending=is_pending, spare_id=spare_id)

        return await self._decide(ask.transactional_id, decide)

    async def add_partitions(
        self, transactional_id: str, producer: Producer, partitions: Sequence[TopicPartition], client_version: int = 0
    ) -> ErrorCode:
        def decide(known: Transaction | None, *, is_pending: bool, spare_id: int | None) -> Verdict:
            return core.add_partitions(
                known, producer, partitions, self._wall_ms(), is_pending=is_pending, client_version=client_version
            )

        return (await self._decide(transactional_id, decide)).code

    async def end(
        self, transactional_id: str, producer: Producer, *, is_commit: bool, client_version: int = 0
    ) -> Verdict:
        def decide(known: Transaction | None, *, is_pending: bool, spare_id: int | None) -> Verdict:
            return core.end(
                known,
                producer,
                self._wall_ms(),
                is_commit=is_commit,
                is_pending=is_pending,
                client_version=client_version,
                spare_id=spare_id,
            )

        return await self._decide(transactional_id, decide)

    async def verify(
        self,
        transactional_id: str,
        producer_id: int,
        producer_epoch: int,
        partitions: Sequence[TopicPartition],
        *,
        is_adding: bool,
    ) -> Codes:
        """For a partition's leader: may this producer write to them now? `is_adding` (transaction version 2): they are
        added. The coordinator's own codes; 13 where it is not reached, 14, 15 or 16 where it is not ready.
        """
        producer = Producer(producer_id, producer_epoch)
        node_id = self.node_of(transactional_id)
        if node_id is None:
            return dict.fromkeys(partitions, ErrorCode.COORDINATOR_NOT_AVAILABLE)
        if node_id != self._broker.node_id:
            return await ask_peer(
                self._broker.peers, node_id, transactional_id, producer, partitions, is_adding=is_adding
            )
        return await self.verify_here(transactional_id, producer, partitions, is_adding=is_adding)

    async def verify_here(
        self, transactional_id: str, producer: Producer, partitions: Sequence[TopicPartition], *, is_adding: bool
    ) -> Codes:
        try:
            if not is_adding:
                return core.verify_partitions(self.find(transactional_id), producer, partitions)
            code = await self.add_partitions(transactional_id, producer, partitions, VERSION_2)
        except BrokerError as error:
            code = error.code
        return dict.fromkeys(partitions, code)

    # --- decide, store, show

    async def _decide(self, transactional_id: str, decide: _Decide) -> Verdict:
        """The answer, once what it says is stored. BrokerError 14, 15 or 16 where this is not the coordinator."""
        spare_id: int | None = None
        while True:
            loaded = self._shards.find(transactional_id)
            shard = loaded.shard
            verdict = decide(
                shard.find(transactional_id), is_pending=shard.is_pending(transactional_id), spare_id=spare_id
            )
            if not verdict.needs_producer_id:
                break
            spare_id = self._broker.producer_ids.take()
            if spare_id is None:
                spare_id = await self._broker.producer_ids.next()
        if verdict.store is None:
            return verdict
        code = await acked(self._store(loaded, verdict.store))
        return verdict if code is ErrorCode.NONE else Verdict(code)

    def _store(self, loaded: Here, target: Transaction) -> asyncio.Future[ErrorCode]:
        def on_settled(code: ErrorCode) -> None:
            is_acked = code is ErrorCode.NONE
            loaded.shard.settle(target.transactional_id, self._now_ms(), is_acked=is_acked)
            if is_acked and target.state.is_preparing and self._shards.is_current(loaded):
                self._send_markers(loaded, target)

        record = loaded.shard.begin(target)
        return self._shards.write(loaded, [record], is_replayed=False, on_settled=on_settled)

    def _send_markers(self, loaded: Here, transaction: Transaction) -> None:
        marker = Marker(
            producer_id=transaction.producer_id,
            producer_epoch=transaction.producer_epoch,
            is_commit=transaction.is_commit,
            coordinator_epoch=loaded.leader_epoch,
            partitions=transaction.partitions,
            transaction_version=transaction.client_version,
        )
        self._markers.send(marker, loaded, lambda: self._complete(loaded, transaction))

    def _complete(self, loaded: Here, transaction: Transaction) -> None:
        """Every partition has its marker. A write that fails is tried again as long as this broker leads."""
        if not self._shards.is_current(loaded):
            return
        assert loaded.shard.find(transaction.transactional_id) is transaction, "what is decided stays so"
        written = self._store(loaded, core.completed(transaction, self._wall_ms()))
        written.add_done_callback(lambda done: self._on_completed(loaded, transaction, done.result()))

    def _on_completed(self, loaded: Here, transaction: Transaction, code: ErrorCode) -> None:
        name = transaction.transactional_id
        loaded.timers.pop(name, None)
        if code is not ErrorCode.NONE and self._shards.is_current(loaded):
            loop = asyncio.get_running_loop()
            loaded.timers[name] = loop.call_later(_COMPLETE_AGAIN_S, self._complete, loaded, transaction)

    # --- from time to time

    async def _abort_overdue(self) -> None:
        interval_s = self._config.transaction_abort_timed_out_transaction_cleanup_interval_ms / 1000
        while True:
            await asyncio.sleep(interval_s)
            overdue = [each for here in self._shards.ready() for each in here.shard.timed_out(self._now_ms())]
            for start in range(0, len(overdue), _ABORTS_AT_ONCE):
                await asyncio.gather(*map(self._abort, overdue[start : start + _ABORTS_AT_ONCE]))

    async def _abort(self, overdue: Transaction) -> None:
        def decide(known: Transaction | None, *, is_pending: bool, spare_id: int | None) -> Verdict:
            shard = self._shards.find(overdue.transactional_id).shard
            if known is None or is_pending or not shard.is_overdue(known, self._now_ms()):
                return Verdict(ErrorCode.CONCURRENT_TRANSACTIONS)  # it went on while we waited
            return core.timed_out(known, self._wall_ms(), spare_id)

        try:
            code = (await self._decide(overdue.transactional_id, decide)).code
        except BrokerError as error:
            code = error.code
        text = "the transaction of %s is aborted after %d ms: %s"
        log.info(text, overdue.transactional_id, overdue.timeout_ms, code.name)

    async def _expire(self) -> None:
        interval_s = self._config.transaction_remove_expired_transaction_cleanup_interval_ms / 1000
        while True:
            await asyncio.sleep(interval_s)
            for loaded in self._shards.ready():
                await self._remove_expired(loaded)

    async def _remove_expired(self, loaded: Here) -> None:
        shard, expiration_ms = loaded.shard, self._config.transactional_id_expiration_ms
        expired = shard.expired(self._wall_ms(), expiration_ms)
        for start in range(0, len(expired), _REMOVALS_AT_ONCE):
            if not self._shards.is_current(loaded):
                return
            # Again: while the others were being removed, it may have come back into use.
            some, now_ms = expired[start : start + _REMOVALS_AT_ONCE], self._wall_ms()
            ids = [each for each in some if shard.is_expired(each, now_ms, expiration_ms)]
            if not ids:
                continue
            code = await acked(self._remove(loaded, ids))
            log.info("%s-%d: %d ids expired: %s", TRANSACTION_STATE, loaded.index, len(ids), code.name)

    def _remove(self, loaded: Here, ids: Sequence[str]) -> asyncio.Future[ErrorCode]:
        def on_settled(code: ErrorCode) -> None:
            for each in ids:
                loaded.shard.settle(each, self._now_ms(), is_acked=code is ErrorCode.NONE)

        records = [loaded.shard.begin_removal(each) for each in ids]
        return self._shards.write(loaded, records, is_replayed=False, on_settled=on_settled)

    def _now_ms(self) -> int:
        return self._broker.clock.monotonic_ms()

    def _wall_ms(self) -> int:
        return self._broker.clock.now_ms()
