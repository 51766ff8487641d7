"""Transaction version 2 (KIP-890 part 2), switched on by Kafka's own tool: with clients that know it, and others."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.broker_engine.broker_process import BrokerProcess
from tests.compatibility.__main__ import SETTINGS
from tests.compatibility.cells import play
from tests.compatibility.kafka_tools_jvm import ToolsJvm
from tests.compatibility.matrix import FEATURES

pytestmark = pytest.mark.kafka_peer

TRANSACTIONS = [feature.key for feature in FEATURES if feature.kind == "transactions"]


@pytest.fixture(scope="module")
def bootstrap(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with BrokerProcess(tmp_path_factory.mktemp("version-two") / "broker", settings=SETTINGS) as process:
        with ToolsJvm(process.address()) as tools:
            tools.run("features", "upgrade", "--feature", "transaction.version=2")
        yield process.address()


@pytest.mark.parametrize(
    "client",
    [
        "java-4.3.1",
        *(
            pytest.param(name, marks=pytest.mark.slow)
            for name in ("franz-go", "java-3.9.1", "confluent-kafka", "aiokafka", "kafka-python", "kafkajs", "sarama")
        ),
    ],
)
def test_transactions_work_with_version_two_switched_on(bootstrap: str, client: str) -> None:
    failed = {key: cell.why for key, cell in play(client, TRANSACTIONS, bootstrap).items() if cell.verdict == "failed"}
    assert failed == {}
