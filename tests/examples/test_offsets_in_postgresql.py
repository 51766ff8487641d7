"""docs/examples/offsets_in_postgresql.py: two of it are killed again and again, and every record counts once."""

from __future__ import annotations

import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from random import Random

import psycopg
import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from tests.broker_engine.broker_process import BrokerProcess
from tests.control_plane.servers import postgresql

EXAMPLE = Path(__file__).resolve().parents[2] / "docs/examples/offsets_in_postgresql.py"
TOPIC, PARTITIONS, RECORDS, KILLS = "words", 4, 20_000, 4
WORDS = ("tide", "ebb", "flood", "surge", "spring", "neap")
TIMEOUT_S = 60.0


@pytest.fixture
def database() -> Iterator[str]:
    with postgresql() as url:
        yield url


@pytest.fixture
def bootstrap(tmp_path: Path) -> Iterator[str]:
    settings = {"group.min.session.timeout.ms": "500", "group.initial.rebalance.delay.ms": "0"}
    with BrokerProcess(tmp_path / "broker", settings=settings) as broker:
        yield broker.address()


def fill(bootstrap: str) -> Counter[str]:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([NewTopic(TOPIC, PARTITIONS, 1)])[TOPIC].result(30)
    producer, random, words = Producer({"bootstrap.servers": bootstrap}), Random(7), Counter[str]()
    for _ in range(RECORDS):
        word = random.choice(WORDS)
        words[word] += 1
        producer.produce(TOPIC, b"", key=word, partition=random.randrange(PARTITIONS))
        producer.poll(0)
    assert producer.flush(30) == 0
    return words


def start(bootstrap: str, database: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, str(EXAMPLE), "--bootstrap", bootstrap, "--topic", TOPIC, "--database", database]
    return subprocess.Popen([*command, "--session-ms", "1000"])


def counted(database: str) -> Counter[str]:
    with psycopg.connect(database) as connection:
        if connection.execute("SELECT to_regclass('counts')").fetchone() == (None,):
            return Counter()
        return Counter(dict(connection.execute("SELECT key, times FROM counts").fetchall()))


def wait_for(database: str, record_count: int) -> Counter[str]:
    deadline = time.monotonic() + TIMEOUT_S
    while (known := counted(database)).total() < record_count:
        assert time.monotonic() < deadline, f"{known.total()} of {record_count} records after {TIMEOUT_S:.0f} s"
        time.sleep(0.02)  # between two looks at the condition
    return known


def test_every_record_counts_once_though_its_readers_are_killed(bootstrap: str, database: str) -> None:
    words = fill(bootstrap)
    readers = [start(bootstrap, database) for _ in range(2)]
    try:
        for number in range(KILLS):
            wait_for(database, (number + 1) * RECORDS // (KILLS * 2))  # it is in the middle of its work
            victim = readers.pop(0)
            victim.kill()
            victim.wait()
            readers.append(start(bootstrap, database))
        assert wait_for(database, RECORDS) == words
    finally:
        for reader in readers:
            reader.kill()
            reader.wait()
    assert counted(database) == words
