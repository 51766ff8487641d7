"""Kafka Streams 4.3.1, unmodified, with exactly_once_v2: a windowed join and a windowed sum, killed and restored.

The program (java/streams/Totals.java) is killed by SIGKILL in the middle of its work and begins again, once on what its
folder holds and, in the slow version, once on an empty one, so that its state comes back from the changelogs. Each paid
order must be in the output once, and each sum exact, for a reader of committed records.
"""

from __future__ import annotations

import secrets
import shutil
import subprocess
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from confluent_kafka import Producer

from tests.broker_engine.broker_process import BrokerProcess
from tests.broker_engine.cluster.cluster_process import ClusterProcess, wait_for
from tests.compatibility.drivers import JAVA, compiled
from tests.compatibility.observer import Observer

pytestmark = pytest.mark.kafka_peer

PARTITIONS = 2
CUSTOMERS = 5
START_MS = 1_700_000_040_000
"""The first millisecond of a minute."""
STEP_MS = 700
WAIT_S = 90.0
SETTINGS = {"group.initial.rebalance.delay.ms": "100"}


class Totals:
    """The program and the two topics that it reads."""

    def __init__(self, bootstrap: str, folder: Path) -> None:
        self.bootstrap = bootstrap
        self.prefix = f"streams-{secrets.token_hex(3)}"
        self.observer = Observer(bootstrap)
        self._folder = folder
        self._log = (folder / "streams.log").open("w")
        self._process: subprocess.Popen[bytes] | None = None
        self.observer.create({f"{self.prefix}-{name}": PARTITIONS for name in ("orders", "payments", "paid", "totals")})

    def start(self) -> None:
        words = ["java", "-Xmx256m", "-XX:TieredStopAtLevel=1", "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn"]
        classpath = f"{JAVA / 'libs' / 'streams-4.3.1'}/*:{compiled('streams', 'streams-4.3.1')}"
        command = [*words, "-cp", classpath, "Totals", self.bootstrap, self.prefix, str(self._folder / "state")]
        self._process = subprocess.Popen(command, stdout=self._log, stderr=self._log)

    def kill(self) -> None:
        assert self._process is not None
        self._process.kill()
        self._process.wait()

    def forget_state(self) -> None:
        shutil.rmtree(self._folder / "state")

    def write(self, numbers: Sequence[int]) -> None:
        """An order and its payment a second later, each pair with a key of its own."""
        producer = Producer({"bootstrap.servers": self.bootstrap})
        for number in numbers:
            stamp, key = START_MS + number * STEP_MS, key_of(number)
            for name, delay_ms in (("orders", 0), ("payments", 1_000)):
                topic = f"{self.prefix}-{name}"
                partition = number % CUSTOMERS % PARTITIONS
                producer.produce(topic, str(number), key, partition=partition, timestamp=stamp + delay_ms)
        assert producer.flush(30) == 0

    def paid(self) -> list[str]:
        """Keys of what was joined, as often as they stand there."""
        return [key for key, _ in self._committed("paid")]

    def totals(self) -> dict[str, int]:
        """The last value of each customer and minute."""
        return {key: int(value) for key, value in self._committed("totals")}

    def wait_for_paid(self, count: int) -> None:
        try:
            wait_for(f"{count} paid orders", lambda: len(self.paid()) >= count, timeout_s=WAIT_S)
        except AssertionError as error:
            said = (self._folder / "streams.log").read_text()[-3_000:]
            raise AssertionError(f"{error}; {len(self.paid())} were there\n{said}") from error

    def _committed(self, name: str) -> list[tuple[str, str]]:
        topic = f"{self.prefix}-{name}"
        return [pair for partition in range(PARTITIONS) for pair in self.observer.committed_pairs(topic, partition)]

    def close(self) -> None:
        if self._process is not None and self._process.poll() is None:
            self.kill()
        self._log.close()


def key_of(number: int) -> str:
    return f"customer-{number % CUSTOMERS}:{number}"


def expected_totals(count: int) -> dict[str, int]:
    """A joined record carries the later timestamp of its two, so the payment's decides the minute."""
    sums: dict[str, int] = defaultdict(int)
    for number in range(count):
        paid_ms = START_MS + number * STEP_MS + 1_000
        sums[f"customer-{number % CUSTOMERS}@{paid_ms - paid_ms % 60_000}"] += number
    return dict(sums)


def check_exact(totals: Totals, count: int) -> None:
    totals.wait_for_paid(count)
    wait_for("the last sum", lambda: totals.totals() == expected_totals(count), timeout_s=WAIT_S)
    assert sorted(totals.paid()) == sorted(key_of(number) for number in range(count)), "each once"


@pytest.fixture
def on_one_broker(tmp_path: Path) -> Iterator[Totals]:
    with BrokerProcess(tmp_path / "broker", settings=SETTINGS) as broker:
        totals = Totals(broker.address(), tmp_path)
        yield totals
        totals.close()


@pytest.fixture
def on_three_brokers(tmp_path: Path) -> Iterator[Totals]:
    with ClusterProcess(tmp_path, settings=SETTINGS) as cluster:
        cluster.wait_for_brokers(1, 2, 3)
        totals = Totals(cluster.bootstrap, tmp_path)
        yield totals
        totals.close()


def test_a_streams_program_that_is_killed_counts_everything_once(on_one_broker: Totals) -> None:
    totals = on_one_broker
    totals.write(range(150))
    totals.start()
    totals.wait_for_paid(20)
    totals.kill()
    totals.write(range(150, 300))
    totals.start()
    check_exact(totals, 300)


@pytest.mark.slow
def test_a_streams_program_is_restored_on_three_brokers_after_its_disk_was_lost(on_three_brokers: Totals) -> None:
    totals = on_three_brokers
    totals.write(range(1_000))
    totals.start()
    totals.wait_for_paid(100)
    totals.kill()
    totals.start()
    totals.wait_for_paid(1_000)
    totals.write(range(1_000, 2_000))
    totals.wait_for_paid(1_100)
    totals.kill()
    totals.forget_state()
    totals.start()
    check_exact(totals, 2_000)
