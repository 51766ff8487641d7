"""The same matrix on a tenant's listener: short names outside, the tenant's own inside, groups and transactions too."""

from __future__ import annotations

import pytest

from tests.broker_engine.broker_process import BrokerProcess
from tests.compatibility.cells import play, shortfall
from tests.compatibility.matrix import FEATURES

GROUPS_AND_TRANSACTIONS = [feature.key for feature in FEATURES if feature.kind in ("groups", "transactions")]
EVERYTHING = [feature.key for feature in FEATURES]


@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    ("client", "features"),
    [
        pytest.param("confluent-kafka", GROUPS_AND_TRANSACTIONS, id="confluent-kafka-groups-and-transactions"),
        pytest.param("java-4.3.1", EVERYTHING, id="java-4.3.1", marks=(pytest.mark.slow, pytest.mark.kafka_peer)),
        pytest.param("confluent-kafka", EVERYTHING, id="confluent-kafka", marks=pytest.mark.slow),
        pytest.param("aiokafka", EVERYTHING, id="aiokafka", marks=pytest.mark.slow),
        pytest.param("kafkajs", EVERYTHING, id="kafkajs", marks=pytest.mark.slow),
        pytest.param("franz-go", EVERYTHING, id="franz-go", marks=pytest.mark.slow),
    ],
)
def test_a_tenants_clients_have_everything_too(
    broker: BrokerProcess, keys: dict[str, tuple[str, str]], client: str, features: list[str]
) -> None:
    assert "acme" in keys, "the tenant is there"
    assert shortfall(play(client, features, broker.address("acme"))) == {}
