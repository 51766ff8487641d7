"""Transaction version 2 (KIP-890 part 2), switched on by Kafka's own tool: with clients that know it, and others."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.broker_engine.broker_process import BrokerProcess
from tests.compatibility.__main__ import SETTINGS
from tests.compatibility.cells import play, shortfall
from tests.compatibility.kafka_tools_jvm import ToolsJvm
from tests.compatibility.matrix import FEATURES
from tests.compatibility.observer import Observer

pytestmark = pytest.mark.kafka_peer

TRANSACTIONS = [feature.key for feature in FEATURES if feature.kind == "transactions"]


@pytest.fixture(scope="module")
def bootstrap(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with BrokerProcess(tmp_path_factory.mktemp("version-two") / "broker", settings=SETTINGS) as process:
        with ToolsJvm(process.address()) as tools:
            tools.run("features", "upgrade", "--feature", "transaction.version=2")
        yield process.address()


def clients(*quick: str, slow: tuple[str, ...] = ()) -> list[object]:
    return [*quick, *(pytest.param(name, marks=pytest.mark.slow) for name in slow)]


@pytest.mark.parametrize("client", clients("java-4.3.1", slow=("franz-go",)))
def test_each_transaction_has_an_epoch_of_its_own_by_clients_of_version_two(bootstrap: str, client: str) -> None:
    """Its end raises the epoch, so a record that comes late cannot fall into the next one."""
    assert shortfall(play(client, TRANSACTIONS, bootstrap, client)) == {}
    (first, after_first), (second, after_second) = epochs(bootstrap, f"{client}-txn-abort")
    assert (after_first, second, after_second) == (first + 1, first + 1, first + 2)


@pytest.mark.parametrize(
    "client", clients("confluent-kafka", slow=("java-3.9.1", "aiokafka", "kafka-python", "kafkajs", "sarama"))
)
def test_transactions_of_clients_of_version_one_work_beside_them_and_keep_their_epoch(
    bootstrap: str, client: str
) -> None:
    assert shortfall(play(client, TRANSACTIONS, bootstrap, client)) == {}
    (first, after_first), (second, after_second) = epochs(bootstrap, f"{client}-txn-abort")
    assert (after_first, second, after_second) == (first, first, first)


def epochs(bootstrap: str, topic: str) -> list[tuple[int, int]]:
    """Of each transaction: the producer's epoch in its records, and in its marker."""
    found: list[tuple[int, int]] = []
    seen: set[int] = set()
    for batch in Observer(bootstrap).batches(topic):
        if batch.header.is_control:
            (epoch,) = seen
            found.append((epoch, batch.header.producer_epoch))
            seen.clear()
        else:
            seen.add(batch.header.producer_epoch)
    return found
