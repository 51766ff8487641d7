"""Two groups of three members on one topic, at once: every record once in each group, by clients of both protocols."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator

import pytest
from confluent_kafka import Consumer

from tests.broker_engine.broker_process import BrokerProcess
from tests.broker_engine.cluster.cluster_process import wait_for
from tests.compatibility import drivers
from tests.compatibility.observer import Observer

PARTITIONS, RECORDS = 6, 100
WAIT_S = 60.0


class Member:
    """Polls in a thread of its own and counts what it got."""

    def __init__(self, bootstrap: str, group: str, topic: str, protocol: str) -> None:
        settings = {"bootstrap.servers": bootstrap, "group.id": group, "group.protocol": protocol, "log_level": 0}
        self._consumer = Consumer({**settings, "auto.offset.reset": "earliest", "enable.auto.commit": False})
        self._consumer.subscribe([topic])
        self.seen: Counter[tuple[int, int]] = Counter()
        self.owned = 0
        self._is_closing = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._is_closing.is_set():
            for message in self._consumer.consume(100, timeout=0.05):
                if message.error() is None:
                    self.seen[message.partition(), message.offset()] += 1
            self.owned = len(self._consumer.assignment())

    def close(self) -> None:
        self._is_closing.set()
        self._thread.join(WAIT_S)
        self._consumer.close()


@pytest.fixture(scope="module")
def bootstrap(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    settings = {"group.initial.rebalance.delay.ms": "500"}
    with BrokerProcess(tmp_path_factory.mktemp("two-groups") / "broker", settings=settings) as process:
        yield process.address()


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_every_record_comes_once_to_each_of_two_groups_of_three(bootstrap: str, protocol: str) -> None:
    topic = f"shared-{protocol}"
    observer = Observer(bootstrap)
    observer.create({topic: PARTITIONS})
    groups = {
        name: [Member(bootstrap, f"{topic}-{name}", topic, protocol) for _ in range(3)] for name in ("one", "two")
    }
    everybody = [member for members in groups.values() for member in members]
    try:
        # Records come when the groups are settled: a rebalance in the middle may repeat what was not committed.
        wait_for("two for each", lambda: [member.owned for member in everybody] == [2] * 6, timeout_s=WAIT_S)
        for partition in range(PARTITIONS):
            observer.seed(topic, partition, [f"{i}".encode() for i in range(RECORDS)])
        for name, members in groups.items():
            wait_for(f"all in {name}", lambda members=members: total(members).total() >= 600, timeout_s=WAIT_S)
    finally:
        for member in everybody:
            member.close()
    wanted = Counter({(partition, offset): 1 for partition in range(PARTITIONS) for offset in range(RECORDS)})
    assert {name: total(members) == wanted for name, members in groups.items()} == {"one": True, "two": True}


@pytest.mark.kafka_peer
@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_by_the_java_client_too(bootstrap: str, protocol: str) -> None:
    feature = f"two-groups-{protocol}"
    Observer(bootstrap).create({f"java-{feature}": PARTITIONS})
    answer = drivers.play("java-4.3.1", bootstrap, "java", [feature])[feature]
    assert answer["ok"], answer["why"]


def total(members: list[Member]) -> Counter[tuple[int, int]]:
    return sum((member.seen for member in members), Counter())
