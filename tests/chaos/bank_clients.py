"""Who sends transfers and who reads the ledger, in threads of the test's own process; nobody kills them."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from typing import Self

from confluent_kafka import KafkaError, Message, Producer

from broker_engine.simulator.history import History
from broker_engine.simulator.history.rows import Partition
from tests.chaos.final_reader import TO_THE_END, positions
from tests.chaos.load import CLIENT, RECONNECT, add_polls, end_offset, open_consumer, out_of_range, polled

TRANSFERS_PER_S = 100
END_TIMEOUT_S = 60.0


class Clerk:
    """An idempotent producer at a steady rate while the block lasts; at its end all is answered or given up."""

    def __init__(self, bootstrap: str, partitions: Sequence[Partition], new_transfer: Callable[[int], str]) -> None:
        settings = {"bootstrap.servers": bootstrap, "enable.idempotence": True, "linger.ms": 2}
        settings |= {"request.timeout.ms": 5_000, "retry.backoff.max.ms": 200, "message.timeout.ms": 60_000}
        self._producer = Producer({**settings, **CLIENT, **RECONNECT})
        self._partitions, self._new_transfer = partitions, new_transfer
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self.sent: list[str] = []
        self.acked: list[str] = []

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        self._thread.join()
        assert self._producer.flush(END_TIMEOUT_S) == 0, "transfers without an answer"

    def _run(self) -> None:
        started = time.monotonic()
        while not self._is_over.is_set():
            transfer = self._new_transfer(len(self.sent))
            topic, number = self._partitions[len(self.sent) % len(self._partitions)]
            self.sent.append(transfer)
            self._producer.produce(topic, transfer, partition=number, on_delivery=self._noting(transfer))
            while (left_s := started + len(self.sent) / TRANSFERS_PER_S - time.monotonic()) > 0:
                self._producer.poll(left_s)

    def _noting(self, transfer: str) -> Callable[[KafkaError | None, Message], None]:
        def on_delivery(error: KafkaError | None, _: Message) -> None:
            if error is None:
                self.acked.append(transfer)

        return on_delivery


class Audit:
    """Reads what is committed, by assignment and from the first record on; `finish` reads what is left."""

    def __init__(self, bootstrap: str, partitions: Sequence[Partition], on_entry: Callable[[str], None]) -> None:
        self._consumer = open_consumer(bootstrap, partitions, **TO_THE_END)
        self.history = History()
        self._bootstrap, self._partitions, self._on_entry = bootstrap, partitions, on_entry
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._problem = "the auditor was not asked to finish"
        self._next = dict.fromkeys(partitions, 0)
        self._errors: list[str] = []

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.finish()
        self._consumer.close()

    def finish(self) -> list[str]:
        self._is_over.set()
        self._thread.join()
        return [*self._errors, *([self._problem] if self._problem else [])]

    def _run(self) -> None:
        while not self._is_over.is_set():
            self._read(0.2)
        deadline = time.monotonic() + END_TIMEOUT_S
        while time.monotonic() < deadline:
            if not self._read(1.0) and not (missing := self._what_is_missing()):
                self._problem = ""
                return
        self._problem = f"the ledger was not read to its end: {missing}"

    def _read(self, timeout_s: float) -> int:
        messages = self._consumer.consume(500, timeout=timeout_s)
        add_polls(self.history, "auditor", messages)
        self._errors += out_of_range(messages)
        self._next.update(positions(messages))
        records = polled(messages)
        for part in records.values():
            for _, entry in part:
                self._on_entry(entry)
        return len(records)

    def _what_is_missing(self) -> str:
        """Empty when no transaction is open, and everything before that was read."""
        other = open_consumer(self._bootstrap, self._partitions, **{"isolation.level": "read_uncommitted"})
        try:
            ends = {part: (end_offset(self._consumer, part), end_offset(other, part)) for part in self._partitions}
        finally:
            other.close()
        behind = {part: (self._next[part], *both) for part, both in ends.items() if self._next[part] < max(both)}
        return ", ".join(f"{part}: read to {read}, last stable offset {stable} of {end}"
                         for part, (read, stable, end) in behind.items())  # fmt: skip
