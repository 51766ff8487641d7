"""Two tenants with the same topic name see only their own records, ids and counts."""

from __future__ import annotations

import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient

from tests.broker_engine.broker_process import BrokerProcess
from tests.compatibility.conftest import TENANTS, access_for
from tests.compatibility.test_confluent_kafka import consume, create_topic, produce


@pytest.mark.parametrize("with_sasl", [False, True], ids=["plaintext", "sasl-plain"])
def test_the_same_name_is_another_topic_for_each_tenant(
    broker: BrokerProcess, keys: dict[str, tuple[str, str]], topic: str, with_sasl: bool
) -> None:
    counts = dict(zip(TENANTS, (30, 70), strict=True))
    for tenant, count in counts.items():
        access = access_for(tenant, broker, keys, with_sasl=with_sasl)
        create_topic(access, topic, partitions=1)
        produce(access, topic, count, **{"client.id": tenant})
    for tenant, count in counts.items():
        access = access_for(tenant, broker, keys, with_sasl=with_sasl)
        assert len(consume(access, topic, partitions=1, count=count)) == count
        assert watermark(access.librdkafka(), topic) == count


def watermark(config: dict[str, str], topic: str) -> int:
    from confluent_kafka import Consumer

    consumer = Consumer({**config, "group.id": "unused"})
    try:
        _, high = consumer.get_watermark_offsets(TopicPartition(topic, 0), timeout=30)
        return int(high)
    finally:
        consumer.close()


def test_a_tenants_topic_is_not_there_for_the_other(
    broker: BrokerProcess, keys: dict[str, tuple[str, str]], topic: str
) -> None:
    mine, theirs = (access_for(tenant, broker, keys, with_sasl=True) for tenant in TENANTS)
    create_topic(mine, topic, partitions=1)
    assert topic in AdminClient(mine.librdkafka()).list_topics(timeout=30).topics
    assert topic not in AdminClient(theirs.librdkafka()).list_topics(timeout=30).topics


def test_each_tenant_sees_a_cluster_of_its_own(broker: BrokerProcess, keys: dict[str, tuple[str, str]]) -> None:
    ids = {
        AdminClient(access_for(tenant, broker, keys, with_sasl=True).librdkafka()).list_topics(timeout=30).cluster_id
        for tenant in TENANTS
    }
    assert ids == {f"lkc-{tenant}" for tenant in TENANTS}
