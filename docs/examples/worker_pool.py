"""One poller and a pool of workers, for work that takes long: many records of a partition are under way at once.

python docs/examples/worker_pool.py --bootstrap 127.0.0.1:9092 --topic orders --workers 8

Records of one key go to one worker, in their order; different keys overtake each other. So work ends out of order, and
only the contiguous prefix of what is done may be committed: behind an offset that is committed nothing is left undone.
"""

from __future__ import annotations

import argparse
import queue
import signal
import threading
import time
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field

from confluent_kafka import Consumer, KafkaException, Message, TopicPartition

Work = Callable[[Message], None]
Partition = tuple[str, int]
UNDER_WAY_MAX = 1_000
COMMIT_INTERVAL_S = 1.0


@dataclass(slots=True)
class Progress:
    """Of one partition: what was begun, what is done, and up to where that is without a gap."""

    next_offset: int
    """All below it are done; what may be committed."""
    _under_way: dict[int, None] = field(default_factory=dict)
    """In the order of their offsets, as they were begun; gaps in a log (compaction, transactions) are no records."""
    _done: set[int] = field(default_factory=set)
    _last: int = -1

    def begin(self, offset: int) -> None:
        self._under_way[offset] = None
        self._last = offset

    def finish(self, offset: int) -> None:
        self._done.add(offset)
        while self._under_way and (first := next(iter(self._under_way))) in self._done:
            del self._under_way[first]
            self._done.discard(first)
        self.next_offset = next(iter(self._under_way), self._last + 1)

    @property
    def count(self) -> int:
        return len(self._under_way)


class Pool:
    def __init__(self, settings: dict[str, object], topic: str, work: Work, worker_count: int) -> None:
        self._work = work
        self._queues: list[queue.Queue[Message | None]] = [queue.Queue(UNDER_WAY_MAX) for _ in range(worker_count)]
        self._progress: dict[Partition, Progress] = {}
        self._lock = threading.Condition()
        """Guards the progress: workers note in it, the poller commits from it."""
        self._errors: list[BaseException] = []
        self._committed: dict[Partition, int] = {}
        self._consumer = Consumer({**settings, "enable.auto.commit": False})
        self._consumer.subscribe([topic], on_revoke=self._on_revoke, on_lost=self._on_lost)

    def run(self, is_over: threading.Event) -> None:
        threads = [threading.Thread(target=self._run_worker, args=(box,)) for box in self._queues]
        for thread in threads:
            thread.start()
        try:
            self._poll_until(is_over)
        finally:
            for box in self._queues:
                box.put(None)
            for thread in threads:
                thread.join()
            if not self._errors:
                self._commit(list(self._progress))
            self._consumer.close()

    def _poll_until(self, is_over: threading.Event) -> None:
        next_commit = time.monotonic() + COMMIT_INTERVAL_S
        while not is_over.is_set() and not self._errors:
            self._make_room()
            for message in self._consumer.consume(100, timeout=0.1):
                error = message.error()
                if error is None:
                    self._hand_over(message)
                elif not error.retriable():
                    raise KafkaException(error)
            if time.monotonic() >= next_commit:
                self._commit(list(self._progress))
                next_commit = time.monotonic() + COMMIT_INTERVAL_S
        for error in self._errors:
            raise error

    def _make_room(self) -> None:
        """Paused, not blocked: a poller that stops polling is thrown out of its group."""
        with self._lock:
            is_full = sum(progress.count for progress in self._progress.values()) > UNDER_WAY_MAX // 2
        assigned = self._consumer.assignment()
        (self._consumer.pause if is_full else self._consumer.resume)(assigned)

    def _hand_over(self, message: Message) -> None:
        partition, offset = (message.topic(), message.partition()), message.offset()
        with self._lock:
            self._progress.setdefault(partition, Progress(offset)).begin(offset)
        key = message.key() or str(message.partition()).encode()
        self._queues[zlib.crc32(key) % len(self._queues)].put(message)

    def _run_worker(self, box: queue.Queue[Message | None]) -> None:
        while (message := box.get()) is not None:
            if self._errors:
                continue  # one record could not be handled: nothing behind it may be committed either
            try:
                self._work(message)
            except BaseException as error:
                self._errors.append(error)
                continue
            with self._lock:
                progress = self._progress.get((message.topic(), message.partition()))
                if progress is not None:
                    progress.finish(message.offset())
                self._lock.notify_all()

    def _commit(self, partitions: list[Partition]) -> None:
        with self._lock:
            ready = {part: self._progress[part].next_offset for part in partitions if part in self._progress}
        new = {part: offset for part, offset in ready.items() if self._committed.get(part) != offset}
        if new:
            offsets = [TopicPartition(*part, offset) for part, offset in new.items()]
            self._consumer.commit(offsets=offsets, asynchronous=False)
            self._committed |= new

    def _on_revoke(self, _: Consumer, partitions: list[TopicPartition]) -> None:
        """The next owner shall repeat nothing: what is under way is finished and committed before it is given away."""
        revoked = [(part.topic, part.partition) for part in partitions]
        with self._lock:
            self._lock.wait_for(lambda: self._errors or not any(self._count(part) for part in revoked), timeout=30)
        if not self._errors:
            self._commit(revoked)
        self._forget(revoked)

    def _on_lost(self, _: Consumer, partitions: list[TopicPartition]) -> None:
        """Somebody else has them already: there is nothing to commit any more."""
        self._forget([(part.topic, part.partition) for part in partitions])

    def _count(self, partition: Partition) -> int:
        progress = self._progress.get(partition)
        return 0 if progress is None else progress.count

    def _forget(self, partitions: list[Partition]) -> None:
        with self._lock:
            for part in partitions:
                self._progress.pop(part, None)
                self._committed.pop(part, None)


def say(message: Message) -> None:
    key = (message.key() or b"").decode()
    line = f"{threading.current_thread().name} {message.partition()} {message.offset()} {key}\n"
    print(line, end="", flush=True)  # in one piece: other threads print too


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bootstrap", default="127.0.0.1:9092")
    parser.add_argument("--topic", required=True)
    parser.add_argument("--group", default="pool")
    parser.add_argument("--workers", type=int, default=8)
    given = parser.parse_args()
    is_over = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: is_over.set())
    signal.signal(signal.SIGINT, lambda *_: is_over.set())
    settings: dict[str, object] = {"bootstrap.servers": given.bootstrap, "group.id": given.group}
    Pool({**settings, "auto.offset.reset": "earliest"}, given.topic, say, given.workers).run(is_over)


if __name__ == "__main__":
    main()
