"""Sends records, and offsets of a group, in transactions: all of one are read by read_committed readers, or none.

    producer = TransactionalProducer(client, "transfers-1")
    await producer.init()                       # fences whoever had the id, and ends what it left open
    producer.begin()
    await producer.send("accounts", b"...")
    await producer.send_offsets({TopicPartition("orders", 0): 17}, member.identity)
    await producer.commit()                     # or abort()

Three kinds of errors: ProducerFenced and what init() raises for good: this object is of no further use; AbortRequired:
abort() and begin again; a retriable KafkaError from commit() or abort(): nobody knows yet, call the same one again (or
make a new producer with the id, whose init() settles it, and read what became of it). One transaction at a time, and
one task that begins and ends it; many may send. Transaction version 2 (KIP-890) where the cluster has it when init() is
called, else 1. Left out: two-phase commit (KIP-939), and in version 1 going on after a time-out (KIP-588: here it is
ProducerFenced; in version 2 commit() raises AbortRequired).
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Self

from broker_engine.client.batches import ProducerIdentity
from broker_engine.client.client import Client
from broker_engine.client.errors import KafkaError, error_for, known_code
from broker_engine.client.group_protocol import GroupIdentity
from broker_engine.client.model import RecordMetadata, TopicPartition
from broker_engine.client.producer import CodecName, OnDelivery, Producer
from broker_engine.client.tasks import TaskSet
from broker_engine.client.transaction_calls import TransactionCalls
from broker_engine.client.transaction_state import Phase, TransactionState, is_fatal
from broker_engine.errors import ErrorCode

_ABORTED = KafkaError(ErrorCode.TRANSACTION_ABORTABLE, "the transaction was aborted before the record was sent")


class TransactionalProducer:
    def __init__(
        self,
        client: Client,
        transactional_id: str,
        *,
        transaction_timeout_ms: int = 60_000,
        linger_ms: int = 5,
        codec: CodecName = "none",
        delivery_timeout_ms: int = 120_000,
        max_block_ms: int = 60_000,
        auto_create_topics: bool = True,
    ) -> None:
        """After `transaction_timeout_ms` without an end the coordinator aborts, and fences this producer."""
        self._transaction_timeout_ms = transaction_timeout_ms
        self._state = TransactionState(transactional_id, self._on_wanted)
        self._calls = TransactionCalls(client, transactional_id)
        self._producer = Producer(
            client,
            linger_ms=linger_ms,
            codec=codec,
            delivery_timeout_ms=delivery_timeout_ms,
            max_block_ms=max_block_ms,
            auto_create_topics=auto_create_topics,
            gate=self._state,
        )
        self._tasks = TaskSet(f"transactions {transactional_id}")
        self._adding: asyncio.Task[None] | None = None
        self._is_committing: bool | None = None
        """Which end is under way."""
        self._is_ended = False
        """The coordinator has said so; what is left of an abort is a new epoch."""
        self._must_renew = False

    async def __aenter__(self) -> Self:
        await self.init()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    @property
    def transactional_id(self) -> str:
        return self._state.transactional_id

    @property
    def phase(self) -> Phase:
        return self._state.phase

    @property
    def is_version_2(self) -> bool:
        """Each transaction has an epoch of its own; known after init()."""
        return self._calls.is_version_2

    @property
    def identity(self) -> ProducerIdentity | None:
        """Producer id and epoch, once init() has got them."""
        return self._state.identity

    # --- the transaction

    async def init(self) -> None:
        """Get the id's next epoch: older producers of it are fenced, and their open transaction is ended."""
        self._state.check(Phase.UNREADY, what="init()")
        identity = await self._ask_identity(ProducerIdentity(-1, -1))
        await self._calls.learn_version()
        self._state.adds_by_sending = self._calls.is_version_2
        self._state.on_ready(identity)

    def begin(self) -> None:
        self._state.check(Phase.READY, what="begin()")
        self._state.become(Phase.OPEN)

    async def flush(self) -> None:
        """Return when all that was sent is in the log; raises AbortRequired where something is not."""
        self._state.check(Phase.OPEN, what="flush()")
        await self._producer.flush()
        self._state.check(Phase.OPEN, what="flush()")

    async def commit(self) -> None:
        """Return when the outcome is decided; readers see it a moment later."""
        if not self._is_repeated(is_commit=True):
            await self.flush()
            while not self._producer.is_idle:  # others may have sent meanwhile
                await self.flush()
            self._state.become(Phase.ENDING)
            self._is_committing = True
        identity = self._require_identity()
        if self._state.is_known:
            identity = await self._end(is_commit=True)
        self._finish(identity)

    async def abort(self) -> None:
        """Give the transaction up: what was sent in it is read by nobody who reads committed records only."""
        if not self._is_repeated(is_commit=False):
            self._state.check(Phase.OPEN, Phase.MUST_ABORT, what="abort()")
            has_failed = self._state.phase is Phase.MUST_ABORT
            self._state.error = self._state.error or _ABORTED
            self._state.become(Phase.ENDING)
            self._is_committing = False
            await self._stop_adding()
            self._must_renew = await self._producer.discard(self._state.error) or has_failed
            self._state.check(Phase.ENDING, what="abort()")  # what was under way may have come back as fenced
        identity = self._require_identity()
        if self._state.is_known and not self._is_ended:
            identity = await self._end(is_commit=False)
            self._is_ended = True
        if self._state.is_known and self._must_renew and not self._calls.is_version_2:
            # What is under way somewhere, or was given up, must not get into the next transaction.
            identity = await self._ask_identity(identity)
            self._producer.renew(identity)
        self._finish(identity)

    def _is_repeated(self, *, is_commit: bool) -> bool:
        """The same end again, after an error that passes."""
        return self._state.phase is Phase.ENDING and self._is_committing is is_commit

    def _finish(self, identity: ProducerIdentity) -> None:
        self._is_committing = None
        self._is_ended = self._must_renew = False
        self._state.on_ready(identity)

    async def close(self) -> None:
        """End without an answer about what is open: the next init() of the id, or the time-out, aborts it."""
        await self._tasks.close()
        await self._producer.close(timeout_ms=0)

    # --- what is in it

    async def send(
        self,
        topic: str,
        value: bytes | None,
        *,
        key: bytes | None = None,
        partition: int | None = None,
        headers: Sequence[tuple[str, bytes | None]] = (),
        timestamp_ms: int | None = None,
    ) -> RecordMetadata:
        """Return when the record is in the log; it counts when the transaction is committed."""
        self._state.check(Phase.OPEN, what="send()")
        return await self._producer.send(
            topic, value, key=key, partition=partition, headers=headers, timestamp_ms=timestamp_ms
        )

    def send_nowait(
        self,
        topic: str,
        value: bytes | None,
        *,
        key: bytes | None = None,
        partition: int | None = None,
        headers: Sequence[tuple[str, bytes | None]] = (),
        timestamp_ms: int | None = None,
        on_delivery: OnDelivery | None = None,
    ) -> asyncio.Future[RecordMetadata]:
        """Hand a record over; commit() waits for it and raises AbortRequired if it was not taken."""
        self._state.check(Phase.OPEN, what="send_nowait()")
        return self._producer.send_nowait(
            topic,
            value,
            key=key,
            partition=partition,
            headers=headers,
            timestamp_ms=timestamp_ms,
            on_delivery=on_delivery,
        )

    async def send_offsets(self, offsets: Mapping[TopicPartition, int], group: GroupIdentity) -> None:
        """The group's offsets move with this transaction. `group` fences members of older generations."""
        self._state.check(Phase.OPEN, what="send_offsets()")
        if not offsets:
            return
        try:
            self._state.is_known = True
            if not self._calls.is_version_2:
                await self._calls.add_offsets(self._require_identity(), group)
            await self._calls.commit_offsets(self._require_identity(), offsets, group)
        except KafkaError as error:
            raise self._failed(error) from error

    # --- the coordinator

    async def _ask_identity(self, known: ProducerIdentity) -> ProducerIdentity:
        response = await self._calls.init(known, self._transaction_timeout_ms)
        self._raise_if_refused(response.error_code, "init")
        return ProducerIdentity(response.producer_id, response.producer_epoch)

    async def _end(self, *, is_commit: bool) -> ProducerIdentity:
        """Who this producer is from now on."""
        identity = self._require_identity()
        response = await self._calls.end(identity, is_commit=is_commit)
        code = known_code(response.error_code)
        if code == ErrorCode.INVALID_TXN_STATE and not is_commit and not self._calls.is_version_2:
            return identity  # what should have been added never was: there is nothing to abort
        if code != ErrorCode.NONE and is_commit and not is_fatal(code):
            self._state.error = error_for(code, None, "commit")
            self._state.become(Phase.MUST_ABORT)
            raise self._state.abort_required()
        self._raise_if_refused(response.error_code, "commit" if is_commit else "abort")
        if not self._calls.is_version_2:
            return identity
        raised = ProducerIdentity(response.producer_id, response.producer_epoch)
        self._producer.renew(raised)
        return raised

    def _on_wanted(self) -> None:
        if self._adding is None or self._adding.done():
            self._adding = self._tasks.spawn(self._add_wanted(), "add partitions")

    async def _add_wanted(self) -> None:
        while self._state.wanted and self._state.phase is Phase.OPEN:
            try:
                await self._add_partitions(list(self._state.wanted))
            except KafkaError as error:
                self._state.on_failed(error)
            self._producer.wake()

    async def _add_partitions(self, targets: list[TopicPartition]) -> None:
        self._state.is_known = True
        await self._calls.add_partitions(self._require_identity(), targets)
        self._state.on_added(targets)

    async def _stop_adding(self) -> None:
        """Not cancelled: an answer on its way would be lost, and with it what the coordinator knows."""
        if self._adding is not None:
            await asyncio.wait([self._adding])

    # --- errors

    def _require_identity(self) -> ProducerIdentity:
        assert self._state.identity is not None, "init() comes first"
        return self._state.identity

    def _raise_if_refused(self, code: int, what: str) -> None:
        if code == ErrorCode.NONE:
            return
        error = error_for(code, None, f"{what} {self.transactional_id!r}")
        raise self._state.fail(error) if is_fatal(error.code) else error

    def _failed(self, error: KafkaError) -> KafkaError:
        self._state.on_failed(error)
        if self._state.phase is Phase.FAILED:
            assert self._state.error is not None
            return self._state.error
        return self._state.abort_required()
