"""Clients under which faults happen: librdkafka in a process of its own, and the history of what it was told.

Producers send unique values to partitions in turn, at a steady rate; readers follow every partition by assignment and
ask for ends now and then. Everything that librdkafka cannot say for certain is `info`.
"""

from __future__ import annotations

import logging
import multiprocessing
import os
import sys
import threading
import time
import traceback
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from multiprocessing.sharedctypes import Synchronized
from multiprocessing.synchronize import Event
from pathlib import Path
from typing import Any

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition

from broker_engine.simulator.history import Allowed, EndOffset, History, Kind, Poll, Send
from broker_engine.simulator.history.rows import Partition

FLUSH_TIMEOUT_S = 90.0
READER_END_TIMEOUT_S = 30.0
END_INTERVAL_S = 0.5
END_TIMEOUT_S = 30.0
POLL_RECORDS = 500
_context = multiprocessing.get_context("spawn")

CLIENT = {"log_level": 0, "topic.metadata.refresh.fast.interval.ms": 50, "topic.metadata.refresh.interval.ms": 2_000}
READ_COMMITTED = {"isolation.level": "read_committed"}
RECONNECT = {"reconnect.backoff.ms": 20, "reconnect.backoff.max.ms": 250, "socket.connection.setup.timeout.ms": 2_000}


@dataclass(frozen=True, slots=True)
class ProducerPlan:
    name: str
    acks: str = "all"
    is_idempotent: bool = True
    records_per_s: int = 200
    record_bytes: int = 100
    timeout_ms: int = 60_000
    """How long it tries to deliver a record; then nobody knows."""

    def settings(self) -> dict[str, Any]:
        return {
            "acks": self.acks,
            "enable.idempotence": self.is_idempotent,
            "message.timeout.ms": self.timeout_ms,
            "request.timeout.ms": 5_000,
            "linger.ms": 2,
            "retry.backoff.ms": 20,
            "retry.backoff.max.ms": 200,
            "compression.type": "none",
        }


@dataclass(frozen=True, slots=True)
class LoadPlan:
    bootstrap: str
    partitions: tuple[Partition, ...]
    producers: tuple[ProducerPlan, ...]
    reader_count: int = 2
    results: tuple[Partition, ...] = ()
    """Where transactions write; a reader of its own follows what they committed."""

    def allowed(self, *kinds: Kind) -> Allowed:
        """What these producers' settings do not promise."""
        weak = [plan.name for plan in self.producers if plan.acks != "all"]
        repeating = [plan.name for plan in self.producers if not plan.is_idempotent]
        return Allowed(
            may_lose=frozenset(weak),
            may_duplicate=frozenset(repeating),
            kinds=frozenset({Kind.G0, Kind.G1C_WW, *kinds}),
        )


class Load:
    """`with Load(plan, folder) as load:` runs until `finish()`, which answers the history."""

    def __init__(self, plan: LoadPlan, folder: Path) -> None:
        self._path = folder / f"history-{time.monotonic_ns()}.jsonl"
        self._stop: Event = _context.Event()
        self._acked: Synchronized[int] = _context.Value("q", 0)
        self._process = _context.Process(target=_run, args=(plan, self._path, self._stop, self._acked), daemon=True)

    def __enter__(self) -> Load:
        self._process.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._process.is_alive():
            self._process.kill()
        self._process.join()

    @property
    def acked(self) -> int:
        return self._acked.value

    def finish(self) -> tuple[History, list[str]]:
        """What clients were told, and what they found so wrong that it stands in no history."""
        self._stop.set()
        self._process.join(FLUSH_TIMEOUT_S + 60)
        assert self._process.exitcode == 0, f"the clients ended with {self._process.exitcode}"
        return History.load(self._path), self._path.with_suffix(".errors").read_text().splitlines()


def _run(plan: LoadPlan, path: Path, stop: Event, acked: Synchronized[int]) -> None:
    workers: list[Worker] = [ProducerWorker(plan, producer, acked, path.parent) for producer in plan.producers]
    readers_may_end = threading.Event()
    readers: list[Worker] = [ReaderWorker(plan, f"c{number}", plan.partitions) for number in range(plan.reader_count)]
    if plan.results:
        readers.append(ReaderWorker(plan, "committed", plan.results))
    threads = [threading.Thread(target=worker.run, args=(stop.is_set,)) for worker in workers]
    reader_threads = [
        threading.Thread(target=reader.run, args=(readers_may_end.is_set,), daemon=True) for reader in readers
    ]
    for thread in (*threads, *reader_threads):
        thread.start()
    for thread in threads:
        thread.join()
    readers_may_end.set()
    hung = _still_running(reader_threads, READER_END_TIMEOUT_S)
    history = History()
    history.extend(row for worker in (*workers, *readers) for row in worker.history.rows)
    history.save(path)
    errors = [error for worker in (*workers, *readers) for error in worker.errors] + hung
    path.with_suffix(".errors").write_text("".join(f"{error}\n" for error in errors))
    if hung:
        os._exit(0)  # the call holds a thread that cannot be ended


def _still_running(threads: Sequence[threading.Thread], timeout_s: float) -> list[str]:
    """Where those are, each in a line, that have not ended by then."""
    deadline = time.monotonic() + timeout_s
    for thread in threads:
        thread.join(max(0.0, deadline - time.monotonic()))
    frames = sys._current_frames()
    hung = [thread.ident for thread in threads if thread.is_alive()]
    stacks = [traceback.extract_stack(frames[ident]) for ident in hung if ident in frames]
    return [f"a reader did not end within {timeout_s:.0f} s: " + " > ".join(map(_place, stack)) for stack in stacks]


def _place(frame: traceback.FrameSummary) -> str:
    return f"{Path(frame.filename).name}:{frame.lineno} {frame.line}"


@dataclass(slots=True)
class Worker:
    history: History = field(default_factory=History, init=False)
    errors: list[str] = field(default_factory=list, init=False)

    def run(self, is_over: Callable[[], bool]) -> None:
        try:
            self.work(is_over)
        except Exception as error:  # told at the end: a thread that dies must not pass for one that is done
            self.errors.append(repr(error))

    def work(self, is_over: Callable[[], bool]) -> None:
        raise NotImplementedError


class ProducerWorker(Worker):
    def __init__(self, plan: LoadPlan, producer: ProducerPlan, acked: Synchronized[int], folder: Path) -> None:
        super().__init__()
        self._bootstrap, self._partitions, self._plan, self._acked = plan.bootstrap, plan.partitions, producer, acked
        self._life = 0
        self._log = _log_to(folder / f"client-{producer.name}.log")

    def work(self, is_over: Callable[[], bool]) -> None:
        client, number, started = self._new_client(), 0, time.monotonic()
        while not is_over():
            client.poll(max(0.0, started + number / self._plan.records_per_s - time.monotonic()))
            if time.monotonic() - started < number / self._plan.records_per_s:
                continue
            if not self._send(client, number):
                self._give_up(client)
                client = self._new_client()
            number += 1
        left = client.flush(FLUSH_TIMEOUT_S)
        assert left == 0, f"{self._plan.name}: {left} records without an answer after {FLUSH_TIMEOUT_S} s"

    def _new_client(self) -> Producer:
        self._life += 1
        settings = {"bootstrap.servers": self._bootstrap, **CLIENT, **RECONNECT, **self._plan.settings()}
        if self._plan.is_idempotent:
            settings |= {"debug": "eos", "log_level": 7}
        return Producer(settings, logger=self._log)

    def _give_up(self, client: Producer) -> None:
        """A fatal error, as of an idempotent producer whose sequence is broken: a new producer id must follow."""
        client.purge()
        client.flush(FLUSH_TIMEOUT_S)

    def _send(self, client: Producer, number: int) -> bool:
        partition = self._partitions[number % len(self._partitions)]
        value = f"{self._plan.name}:{number}"
        self.history.invoke(self._plan.name, "send", [Send(partition, value)], time=time.monotonic())
        record = value.encode().ljust(self._plan.record_bytes)

        def on_delivery(error: KafkaError | None, message: Message) -> None:
            self._answered(partition, value, error, message)

        try:
            client.produce(partition[0], record, partition=partition[1], on_delivery=on_delivery)
        except (KafkaException, BufferError):
            self.history.fail(self._plan.name, "send", [Send(partition, value)], time=time.monotonic())
            client.poll(0.05)
            return False
        return True

    def _answered(self, partition: Partition, value: str, error: KafkaError | None, message: Message) -> None:
        now, name = time.monotonic(), self._plan.name
        if error is not None:
            self.history.info(name, "send", [Send(partition, value)], time=now)
            return
        offset = message.offset()
        known = offset if offset is not None and offset >= 0 else None
        self.history.ok(name, "send", [Send(partition, value, known)], time=now)
        with self._acked.get_lock():
            self._acked.value += 1


def _log_to(path: Path) -> logging.Logger:
    """What librdkafka says of its sequences: the client's part in a duplicate can be told from the cluster's."""
    log = logging.getLogger(path.name)
    handler = logging.FileHandler(path)
    handler.setFormatter(logging.Formatter("%(asctime)s %(message)s"))
    log.addHandler(handler)
    log.setLevel(logging.DEBUG)
    log.propagate = False
    return log


class ReaderWorker(Worker):
    """Sees only what is committed, which is everything where nobody writes in transactions."""

    def __init__(self, plan: LoadPlan, name: str, partitions: Sequence[Partition]) -> None:
        super().__init__()
        self._plan, self._name, self._partitions = plan, name, partitions

    def work(self, is_over: Callable[[], bool]) -> None:
        consumer = open_consumer(self._plan.bootstrap, self._partitions, **READ_COMMITTED)
        self.history.ok(self._name, "assign", time=time.monotonic())
        next_end = time.monotonic()
        while not is_over():
            messages = consumer.consume(POLL_RECORDS, timeout=0.2)
            self.errors.extend(f"{self._name}: {text}" for text in out_of_range(messages))
            add_polls(self.history, self._name, messages)
            if time.monotonic() >= next_end:
                next_end = time.monotonic() + END_INTERVAL_S
                self._ask_for_ends(consumer)
        consumer.close()

    def _ask_for_ends(self, consumer: Consumer) -> None:
        for partition in self._partitions[:2]:
            self.history.invoke(self._name, "list_offsets", [EndOffset(partition)], time=time.monotonic())
            try:
                _, end = consumer.get_watermark_offsets(TopicPartition(*partition), timeout=0.5)
            except KafkaException:
                self.history.info(self._name, "list_offsets", [EndOffset(partition)], time=time.monotonic())
            else:
                self.history.ok(self._name, "list_offsets", [EndOffset(partition, end)], time=time.monotonic())


def open_consumer(bootstrap: str, partitions: Sequence[Partition], **more: object) -> Consumer:
    """By assignment, from the beginning. An offset that is out of range is an error, never a silent jump."""
    settings = {"bootstrap.servers": bootstrap, "group.id": "chaos", "enable.auto.commit": False}
    settings |= {"auto.offset.reset": "error", "fetch.wait.max.ms": 100, "fetch.error.backoff.ms": 20}
    consumer = Consumer({**settings, **CLIENT, **RECONNECT, **more})
    consumer.assign([TopicPartition(topic, number, OFFSET_BEGINNING) for topic, number in partitions])
    return consumer


def end_offset(consumer: Consumer, partition: Partition) -> int:
    """Of a partition that has a leader; asked again while that leader does not know its high watermark."""
    deadline = time.monotonic() + END_TIMEOUT_S
    while True:
        try:
            return int(consumer.get_watermark_offsets(TopicPartition(*partition), timeout=10)[1])
        except KafkaException:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.1)


def add_polls(history: History, process: str, messages: Sequence[Message]) -> int:
    """One row of what came at once; how many records it has."""
    records = polled(messages)
    if records:
        polls = [Poll(partition, tuple(part)) for partition, part in records.items()]
        history.ok(process, "poll", polls, time=time.monotonic())
    return sum(len(part) for part in records.values())


def polled(messages: Sequence[Message]) -> dict[Partition, list[tuple[int, str]]]:
    """Offsets and values by partition; errors are left out."""
    records: dict[Partition, list[tuple[int, str]]] = defaultdict(list)
    for message in messages:
        if message.error() is not None:
            continue
        topic, number, offset = message.topic(), message.partition(), message.offset()
        assert topic is not None
        assert number is not None
        assert offset is not None
        records[topic, number].append((offset, bytes(message.value() or b"").decode().rstrip()))
    return records


def out_of_range(messages: Sequence[Message]) -> list[str]:
    """A reader's offset is no longer there: what it read before was not committed, or is lost."""
    errors = [error for message in messages if (error := message.error()) is not None]
    return [str(error) for error in errors if error.code() == KafkaError._AUTO_OFFSET_RESET]
