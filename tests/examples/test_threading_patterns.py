"""docs/examples: a consumer per thread, and one poller with a pool that commits only what is done without a gap."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
import threading
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest
from confluent_kafka import Consumer, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from tests.broker_engine.broker_process import BrokerProcess

EXAMPLES = Path(__file__).resolve().parents[2] / "docs/examples"
RECORDS, PARTITIONS, KEYS = 600, 3, 20
TIMEOUT_S = 60.0


def example(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def bootstrap(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    settings = {"group.min.session.timeout.ms": "500", "group.initial.rebalance.delay.ms": "0"}
    with BrokerProcess(tmp_path_factory.mktemp("examples") / "broker", settings=settings) as broker:
        yield broker.address()


def fill(bootstrap: str, topic: str) -> None:
    """Values count up within each key."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([NewTopic(topic, PARTITIONS, 1)])[topic].result(30)
    producer = Producer({"bootstrap.servers": bootstrap})
    for number in range(RECORDS):
        producer.produce(topic, str(number // KEYS), key=f"key-{number % KEYS}")
    assert producer.flush(30) == 0


def settings_of(bootstrap: str, group: str) -> dict[str, object]:
    base: dict[str, object] = {"bootstrap.servers": bootstrap, "group.id": group, "auto.offset.reset": "earliest"}
    return {**base, "session.timeout.ms": 1_000, "heartbeat.interval.ms": 200}


class Seen:
    """What the work was done on, by key; work of another thread may come in between."""

    def __init__(self, is_over: threading.Event, wanted: int = RECORDS) -> None:
        self.values: defaultdict[str, list[int]] = defaultdict(list)
        self._lock, self._is_over, self._wanted = threading.Lock(), is_over, wanted

    def work(self, message: Message) -> None:
        with self._lock:
            self.values[(message.key() or b"").decode()].append(int(message.value() or b""))
            if sum(map(len, self.values.values())) >= self._wanted:
                self._is_over.set()


def committed(bootstrap: str, group: str, topic: str) -> int:
    consumer = Consumer(settings_of(bootstrap, group))
    known = consumer.committed([TopicPartition(topic, number) for number in range(PARTITIONS)], timeout=30)
    consumer.close()
    return sum(max(0, part.offset) for part in known)


def test_threads_with_a_consumer_each_keep_the_order_of_keys_and_commit_what_they_did(bootstrap: str) -> None:
    per_thread, is_over = example("consumer_per_thread"), threading.Event()
    fill(bootstrap, "per-thread")
    seen = Seen(is_over)
    per_thread.run(settings_of(bootstrap, "per-thread"), "per-thread", seen.work, 3, is_over)
    assert all(values == list(range(RECORDS // KEYS)) for values in seen.values.values())
    assert len(seen.values) == KEYS
    assert committed(bootstrap, "per-thread", "per-thread") == RECORDS


def test_a_pool_keeps_the_order_of_keys_and_commits_what_it_did(bootstrap: str) -> None:
    pool, is_over = example("worker_pool"), threading.Event()
    fill(bootstrap, "pool")
    seen = Seen(is_over)
    pool.Pool(settings_of(bootstrap, "pool"), "pool", seen.work, 4).run(is_over)
    assert all(values == list(range(RECORDS // KEYS)) for values in seen.values.values())
    assert len(seen.values) == KEYS
    assert committed(bootstrap, "pool", "pool") == RECORDS


def test_only_the_contiguous_prefix_may_be_committed() -> None:
    progress = example("worker_pool").Progress(next_offset=10)
    for offset in (10, 11, 12, 15):
        progress.begin(offset)
    progress.finish(12)
    assert progress.next_offset == 10, "10 and 11 are still under way"
    progress.finish(10)
    assert progress.next_offset == 11
    progress.finish(11)
    assert progress.next_offset == 15, "what a log leaves out (13 and 14) needs no work"
    progress.finish(15)
    assert progress.next_offset == 16


def test_a_record_that_cannot_be_handled_stops_the_pool_and_nothing_behind_it_is_committed(bootstrap: str) -> None:
    pool = example("worker_pool")
    fill(bootstrap, "broken")

    def work(message: Message) -> None:
        if message.offset() == 5:
            raise ValueError("this one is bad")

    with pytest.raises(ValueError, match="this one is bad"):
        pool.Pool(settings_of(bootstrap, "broken"), "broken", work, 4).run(threading.Event())
    assert committed(bootstrap, "broken", "broken") <= 5 * PARTITIONS


def test_a_pool_that_is_killed_repeats_and_loses_nothing(bootstrap: str) -> None:
    fill(bootstrap, "killed")
    command = [sys.executable, str(EXAMPLES / "worker_pool.py"), "--bootstrap", bootstrap, "--topic", "killed"]
    done: set[tuple[str, str]] = set()
    with subprocess.Popen([*command, "--group", "killed"], stdout=subprocess.PIPE, text=True) as first:
        assert first.stdout is not None
        done |= {_place(first.stdout.readline()) for _ in range(RECORDS // 3)}
        first.kill()
    pool, is_over = example("worker_pool"), threading.Event()

    def work(message: Message) -> None:
        done.add((str(message.partition()), str(message.offset())))
        if len(done) == RECORDS:
            is_over.set()

    patience = threading.Timer(TIMEOUT_S, is_over.set)
    patience.start()
    pool.Pool(settings_of(bootstrap, "killed"), "killed", work, 4).run(is_over)
    patience.cancel()
    assert len(done) == RECORDS, f"only {len(done)} of {RECORDS} after {TIMEOUT_S:.0f} s"


def _place(line: str) -> tuple[str, str]:
    *_, partition, offset, _ = line.split()
    return partition, offset
