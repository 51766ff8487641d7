"""kafka-python, unmodified: produce and consume by assignment, with and without SASL PLAIN."""

from __future__ import annotations

from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import NewTopic

from tests.compatibility.conftest import Access


def test_kafka_python_reads_back_what_it_wrote(access: Access, topic: str) -> None:
    admin = KafkaAdminClient(**access.python_client())
    admin.create_topics([NewTopic(topic, num_partitions=1, replication_factor=1)])
    admin.close()
    producer = KafkaProducer(**access.python_client(), acks="all")
    sent = [producer.send(topic, key=str(i).encode(), value=f"value-{i}".encode()) for i in range(300)]
    assert sorted(future.get(timeout=30).offset for future in sent) == list(range(300))
    producer.close()
    consumer = KafkaConsumer(**access.python_client(), auto_offset_reset="earliest", consumer_timeout_ms=30_000)
    consumer.assign([TopicPartition(topic, 0)])
    values = [next(consumer).value for _ in range(300)]
    consumer.close()
    assert sorted(values) == sorted(f"value-{i}".encode() for i in range(300))
