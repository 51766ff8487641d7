"""Consume, transform, produce, and a SIGKILL inside of it: with a transaction and without, for both isolation levels.

The transformer is a process of its own. It dies when a batch's results are written (and flushed) and its offsets are
not; another process with the same transactional id then takes over and reads to the end.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import time
from collections.abc import Sequence
from dataclasses import dataclass

from confluent_kafka import Consumer, KafkaError, Message, Producer, TopicPartition

from broker_engine.simulator.history import History
from broker_engine.simulator.history.rows import Partition
from tests.chaos.load import CLIENT, RECONNECT, end_offset, open_consumer, polled
from tests.guarantees.lab import Lab, Sender
from tests.guarantees.story import Counts, Expected, Story

RECORDS, DIES_AT, BATCH = 200, 90, 20
CALL_TIMEOUT_S = 30.0
READ_TIMEOUT_S = 60.0
TIMEOUT_MS = 10_000
_context = multiprocessing.get_context("spawn")


@dataclass(frozen=True, slots=True)
class ChainPlan:
    bootstrap: str
    source: Partition
    target: Partition
    is_transactional: bool
    must_die: bool


def chain_dies(*, is_transactional: bool, isolation: str) -> Story:
    def play(lab: Lab) -> Counts:
        source, target = _filled_topics(lab)
        for must_die in (True, False):
            _run(ChainPlan(lab.cluster.bootstrap, source, target, is_transactional, must_die))
        values = read_back(lab, target, isolation)
        different = len(set(values))
        return Counts(RECORDS, RECORDS, different, RECORDS - different, len(values) - different)

    is_safe = is_transactional and isolation == "read_committed"
    way = "results and offsets in one transaction" if is_transactional else "results written, then offsets committed"
    promises = {
        (True, "read_committed"): "exactly once: the half transaction is never shown, its records are done again",
        (True, "read_uncommitted"): "this reader asks for what was aborted too",
        (False, "read_committed"): "at least once: results without their offsets are written again",
    }
    return Story(
        key=f"chain-{'transaction' if is_transactional else 'plain'}-{isolation}",
        items="F7, F11",
        event="transformer SIGKILLed with results written and offsets not",
        setting=f"{way}; reader with {isolation}",
        promise=promises[is_transactional, isolation],
        expected=Expected.KEEPS if is_safe else Expected.DUPLICATES,
        play=play,
    )


def nobody_comes_back() -> Story:
    """A transaction that is open when its producer dies is never shown; it holds up readers until it times out."""

    def play(lab: Lab) -> Counts:
        source, target = _filled_topics(lab)
        _run(ChainPlan(lab.cluster.bootstrap, source, target, is_transactional=True, must_die=True))
        open_end, stable_end = _ends(lab, target)
        assert stable_end < open_end, "no transaction was open when the producer died"
        lab.wait_until(lambda: len(set(_ends(lab, target))) == 1, "the open transaction is aborted")
        values = read_back(lab, target, "read_committed")
        committed = DIES_AT - DIES_AT % BATCH
        different = len(set(values))
        return Counts(committed + BATCH, committed, different, committed - different, len(values) - different)

    return Story(
        key="chain-nobody-comes-back",
        items="F7, F9",
        event="producer SIGKILLed inside a transaction, nobody takes over",
        setting="reader with read_committed",
        promise="nothing of it is shown; aborted when transaction.timeout.ms is over",
        expected=Expected.KEEPS,
        play=play,
    )


def _filled_topics(lab: Lab) -> tuple[Partition, Partition]:
    source, target = lab.topic(), lab.topic()
    sender = Sender(lab, History(), source, acks="all", **{"enable.idempotence": True})
    sender.send(RECORDS)
    sender.wait()
    assert sender.acked == RECORDS
    return source, target


def _run(plan: ChainPlan) -> None:
    process = _context.Process(target=transform, args=(plan,), daemon=True)
    process.start()
    process.join(READ_TIMEOUT_S)
    code = process.exitcode
    process.kill()
    assert code == (-signal.SIGKILL if plan.must_die else 0), f"the transformer ended with {code}"


# -- the transformer's process


def transform(plan: ChainPlan) -> None:
    """Batches of a fixed size, so that it is known what was committed when it dies."""
    producer, consumer = _new_producer(plan), _new_consumer(plan)
    position = _start(plan, consumer)
    while position < RECORDS:
        messages = _batch(consumer, min(BATCH, RECORDS - position))
        position += len(messages)
        if plan.is_transactional:
            producer.begin_transaction()
        for message in messages:
            producer.produce(plan.target[0], message.value(), partition=plan.target[1])
        assert producer.flush(CALL_TIMEOUT_S) == 0
        if plan.must_die and position > DIES_AT:
            os.kill(os.getpid(), signal.SIGKILL)
        _commit(plan, producer, consumer, position)
    consumer.close()


def _new_producer(plan: ChainPlan) -> Producer:
    settings: dict[str, object] = {"bootstrap.servers": plan.bootstrap, "enable.idempotence": True, "linger.ms": 0}
    if plan.is_transactional:
        settings |= {"transactional.id": "chain", "transaction.timeout.ms": TIMEOUT_MS}
    producer = Producer({**settings, **CLIENT, **RECONNECT})
    if plan.is_transactional:
        producer.init_transactions(CALL_TIMEOUT_S)
    return producer


def _new_consumer(plan: ChainPlan) -> Consumer:
    settings = {"bootstrap.servers": plan.bootstrap, "group.id": "chain", "enable.auto.commit": False}
    return Consumer({**settings, "auto.offset.reset": "error", "fetch.wait.max.ms": 50, **CLIENT, **RECONNECT})


def _start(plan: ChainPlan, consumer: Consumer) -> int:
    """By assignment: who reads what is not the question here."""
    [known] = consumer.committed([TopicPartition(*plan.source)], timeout=CALL_TIMEOUT_S)
    position = max(0, known.offset)
    consumer.assign([TopicPartition(*plan.source, position)])
    return position


def _batch(consumer: Consumer, size: int) -> list[Message]:
    messages: list[Message] = []
    while len(messages) < size:
        for message in consumer.consume(size - len(messages), timeout=1.0):
            error = message.error()
            assert error is None or error.retriable(), str(error)
            if error is None:
                messages.append(message)
    return messages


def _commit(plan: ChainPlan, producer: Producer, consumer: Consumer, position: int) -> None:
    offsets = [TopicPartition(*plan.source, position)]
    if not plan.is_transactional:
        consumer.commit(offsets=offsets, asynchronous=False)
        return
    producer.send_offsets_to_transaction(offsets, consumer.consumer_group_metadata(), CALL_TIMEOUT_S)
    producer.commit_transaction(CALL_TIMEOUT_S)


# -- the reader of results


def read_back(lab: Lab, partition: Partition, isolation: str) -> list[str]:
    consumer = open_consumer(
        lab.cluster.bootstrap, [partition], **{"isolation.level": isolation, "enable.partition.eof": True}
    )
    values: list[str] = []
    deadline = time.monotonic() + READ_TIMEOUT_S
    while True:
        assert time.monotonic() < deadline, f"only {len(values)} results could be read"
        messages = consumer.consume(500, timeout=0.5)
        values += [value for records in polled(messages).values() for _, value in records]
        if _is_at_end(messages) and len(set(_ends(lab, partition))) == 1:
            consumer.close()
            return values


def _is_at_end(messages: Sequence[Message]) -> bool:
    errors = [error for message in messages if (error := message.error()) is not None]
    return any(error.code() == KafkaError._PARTITION_EOF for error in errors)


def _ends(lab: Lab, partition: Partition) -> tuple[int, int]:
    """For everybody, and for readers of committed records only."""
    ends = []
    for isolation in ("read_uncommitted", "read_committed"):
        consumer = open_consumer(lab.cluster.bootstrap, [partition], **{"isolation.level": isolation})
        ends.append(end_offset(consumer, partition))
        consumer.close()
    return ends[0], ends[1]


STORIES = (
    chain_dies(is_transactional=False, isolation="read_committed"),
    chain_dies(is_transactional=True, isolation="read_uncommitted"),
    chain_dies(is_transactional=True, isolation="read_committed"),
    nobody_comes_back(),
)
