"""Consume, transform, produce, in one transaction with the offsets; in a process of its own that may be killed.

What is read and written stands in the journal as rows of `f` = "txn": ok = committed, fail = aborted, info = unknown.
Each life is a process of its own in the history, and its rows have the epoch that its producer was given.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from pathlib import Path

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition

from broker_engine.simulator.history.rows import Epoch, Op, Partition, Poll, Send
from tests.chaos.client_log import DEBUG, ClientLog, divert_stderr, last_identity
from tests.chaos.journal import Journal
from tests.chaos.load import CLIENT, RECONNECT, polled
from tests.chaos.member import check_alive, group_settings
from tests.chaos.signals import Signals
from tests.chaos.watchdog import Watchdog

CALL_TIMEOUT_S = 5.0
GIVE_UP_S = 30.0
"""Then a client begins anew; the closing lines say how often."""
HUNG_S = 20.0
"""A single call has not come back: see watchdog.py."""
BATCH_RECORDS = 50
BATCH_S = 0.1
TRANSACTION_TIMEOUT_MS = 10_000

Transform = Callable[[Partition, int, str], list[tuple[Partition, str]]]
"""From where a record came, its offset and its value: what is to be written where."""
Reads = dict[Partition, list[tuple[int, str]]]


@dataclass(frozen=True, slots=True)
class TransformerPlan:
    bootstrap: str
    group: str
    transactional_id: str
    topics: tuple[str, ...]
    transform: Transform
    """A function of a module: it goes to another process."""
    life: int
    """How often this client was started: what it writes tells the attempts apart."""
    consumer_settings: dict[str, object] = field(default_factory=dict)


def run_transformer(plan: TransformerPlan, name: str, path: Path, signals: Signals) -> None:
    log_path = path.with_suffix(".log")
    divert_stderr(log_path)
    with Journal(path, f"{name}.{plan.life}") as journal:
        watchdog = Watchdog(HUNG_S, lambda: journal.row("hung", "info"))
        watchdog.start()
        Transformer(plan, journal, ClientLog(log_path), signals, watchdog).run()


class MustAbort(Exception):
    """The transaction cannot be committed any more; the producer is fine."""


class GaveUp(Exception):
    """The same call was to be tried again for too long."""


class Fatal(Exception):
    """The producer is fenced or broken: a new one must take its place."""


class Transformer:
    def __init__(
        self, plan: TransformerPlan, journal: Journal, log: ClientLog, signals: Signals, watchdog: Watchdog
    ) -> None:
        self._plan, self._journal, self._log = plan, journal, log
        self._signals, self._watchdog = signals, watchdog
        self._attempts, self._producers = count(1), count(1)
        self._client_id = ""
        self._epoch: Epoch | None = None
        self._gone: set[Partition] = set()
        """Revoked or lost since the batch in hand was begun."""

    def run(self) -> None:
        while not self._signals.must_stop.is_set():
            try:
                self._work()
            except GaveUp:
                self._journal.row("gave-up", "info")
            except (Fatal, MustAbort):
                pass  # the journal has how it ended; the next life begins with a new producer
            except KafkaException:  # its consumer is fenced too, where it is a static member
                if not self._signals.is_replaced.is_set():
                    raise
            self._journal.row("crash", "ok")
            if self._signals.is_replaced.is_set():
                self._journal.row("replaced", "ok")
                return

    def _work(self) -> None:
        client_id = f"{self._journal.process}-{next(self._producers)}"
        producer, consumer = self._new_producer(client_id), self._new_consumer()
        try:
            self.begin(producer, client_id)
            while not self._signals.must_stop.is_set():
                self.play_batch(producer, consumer)
        finally:
            consumer.close()

    def _new_producer(self, client_id: str) -> Producer:
        settings = {"bootstrap.servers": self._plan.bootstrap, "transactional.id": self._plan.transactional_id}
        settings |= {"transaction.timeout.ms": TRANSACTION_TIMEOUT_MS, "linger.ms": 2, "message.timeout.ms": 9_000}
        settings |= {"request.timeout.ms": 5_000, "retry.backoff.ms": 20, "retry.backoff.max.ms": 200}
        return Producer({**settings, **CLIENT, **RECONNECT, **DEBUG, "client.id": client_id})

    def _new_consumer(self) -> Consumer:
        settings = group_settings(self._plan.bootstrap, self._plan.group, self._plan.consumer_settings)
        consumer = Consumer({**settings, "isolation.level": "read_committed"})
        consumer.subscribe(list(self._plan.topics), on_assign=self._on_assign, on_revoke=self._on_revoke,
                           on_lost=self._on_revoke)  # fmt: skip
        return consumer

    def _on_assign(self, _: Consumer, __: list[TopicPartition]) -> None:
        self._journal.row("assign", "ok")

    def _on_revoke(self, _: Consumer, partitions: list[TopicPartition]) -> None:
        self._gone |= {(part.topic, part.partition) for part in partitions}
        self._journal.row("assign", "ok")

    # -- who it is

    def begin(self, producer: Producer, client_id: str) -> None:
        self._client_id, self._epoch = client_id, None
        self._journal.row("init", "invoke")
        self._patiently(partial(producer.init_transactions, CALL_TIMEOUT_S))
        self._learn_epoch()
        assert self._epoch is not None, "librdkafka does not say which epoch it was given: nobody could tell zombies"
        self._signals.has_epoch.set()

    def _learn_epoch(self) -> None:
        """Also between transactions: after an abort librdkafka may ask for the next epoch by itself."""
        found = last_identity(self._log.new_lines(), self._client_id)
        if found is not None:
            self._epoch = Epoch(self._plan.transactional_id, *found)
            self._journal.row("init", "ok", self._epoch)

    # -- one transaction

    def play_batch(self, producer: Producer, consumer: Consumer) -> None:
        messages = self._collect(consumer)
        if not messages:
            return
        self._learn_epoch()
        reads, writes = polled(messages), self._writes(messages)
        ops = self._ops(reads, writes)
        self._journal.row("txn", "invoke", *ops)
        self._signals.is_in_transaction.set()
        try:
            is_committed = self._transact(producer, consumer, reads, writes)
        finally:
            self._signals.is_in_transaction.clear()
        self._journal.row("txn", "ok" if is_committed else "fail", *ops)
        if not is_committed:
            self._rewind(consumer, reads)

    def _ops(self, reads: Reads, writes: list[tuple[Partition, str]]) -> list[Op]:
        assert self._epoch is not None
        polls = (Poll(part, tuple(records)) for part, records in reads.items())
        return [self._epoch, *polls, *(Send(*write) for write in writes)]

    def _collect(self, consumer: Consumer) -> list[Message]:
        """What came within a moment, without what was taken away meanwhile: that is others' by now."""
        messages: list[Message] = []
        deadline = time.monotonic() + BATCH_S
        while len(messages) < BATCH_RECORDS and (left_s := deadline - time.monotonic()) > 0:
            message = consumer.poll(left_s)
            if self._gone:
                messages = [other for other in messages if (other.topic(), other.partition()) not in self._gone]
                self._gone = set()
            if message is None:
                continue
            check_alive([message])
            if message.error() is None:
                messages.append(message)
        return messages

    def _writes(self, messages: Sequence[Message]) -> list[tuple[Partition, str]]:
        attempt, writes = f"{self._journal.process}.{next(self._attempts)}", []
        for partition, records in polled(messages).items():
            for offset, value in records:
                writes += [(to, f"{text}@{attempt}") for to, text in self._plan.transform(partition, offset, value)]
        return writes

    def _transact(
        self, producer: Producer, consumer: Consumer, reads: Reads, writes: list[tuple[Partition, str]]
    ) -> bool:
        """True: committed. False: aborted, for certain."""
        offsets = [TopicPartition(*part, records[-1][0] + 1) for part, records in reads.items()]
        try:
            self._patiently(producer.begin_transaction)
            for (topic, number), value in writes:
                self._patiently(partial(producer.produce, topic, value, partition=number))
            self._patiently(
                lambda: producer.send_offsets_to_transaction(
                    offsets, consumer.consumer_group_metadata(), CALL_TIMEOUT_S
                )
            )
            self._journal.row("commit", "invoke")
            self._patiently(lambda: producer.commit_transaction(CALL_TIMEOUT_S))
        except MustAbort:
            self._patiently(lambda: producer.abort_transaction(CALL_TIMEOUT_S))
            return False
        return True

    def _rewind(self, consumer: Consumer, reads: Reads) -> None:
        """The offsets did not move: the same records come again. Where a partition is gone, to somebody else."""
        owned = {(part.topic, part.partition) for part in consumer.assignment()}
        for partition, records in reads.items():
            if partition in owned:
                try:
                    consumer.seek(TopicPartition(*partition, records[0][0]))
                except KafkaException:
                    raise Fatal(f"cannot go back on {partition}") from None
        self._journal.row("seek", "ok")

    def _patiently(self, call: Callable[[], object]) -> None:
        """Until it is done: what librdkafka calls retriable is for the same call again."""
        deadline = time.monotonic() + GIVE_UP_S
        while True:
            try:
                with self._watchdog:
                    call()
            except KafkaException as raised:
                error: KafkaError = raised.args[0]
                if error.txn_requires_abort():
                    raise MustAbort(str(error)) from None
                if not error.retriable():
                    raise Fatal(str(error)) from None
                if time.monotonic() > deadline:
                    raise GaveUp(str(error)) from None
            else:
                return
