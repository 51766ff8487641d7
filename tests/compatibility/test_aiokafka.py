"""aiokafka, unmodified: produce and consume by assignment, with and without SASL PLAIN."""

from __future__ import annotations

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewTopic

from tests.compatibility.conftest import Access


@pytest.mark.parametrize("idempotent", [True, False])
async def test_aiokafka_reads_back_what_it_wrote(access: Access, topic: str, idempotent: bool) -> None:
    admin = AIOKafkaAdminClient(**access.python_client())
    await admin.start()
    await admin.create_topics([NewTopic(topic, num_partitions=2, replication_factor=1)])
    await admin.close()
    async with AIOKafkaProducer(**access.python_client(), enable_idempotence=idempotent) as producer:
        for i in range(300):
            await producer.send(topic, f"value-{i}".encode(), partition=i % 2)
        await producer.flush()
    consumer = AIOKafkaConsumer(**access.python_client(), auto_offset_reset="earliest")
    consumer.assign([TopicPartition(topic, 0), TopicPartition(topic, 1)])
    async with consumer:
        values = [(await consumer.getone()).value for _ in range(300)]
    assert sorted(values) == sorted(f"value-{i}".encode() for i in range(300))
