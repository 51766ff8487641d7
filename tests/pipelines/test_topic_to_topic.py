"""The job against a real broker, through Spark's own Kafka connector: records in, counts out, nothing counted twice."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from tests.broker_engine.broker_process import BrokerProcess
from tests.pipelines.spark import run_in_spark_environment

FIRST_MINUTE_MS = 1_767_607_200_000  # 2026-01-05T10:00:00Z
MINUTE_MS = 60_000


@pytest.fixture
def bootstrap(tmp_path: Path) -> Iterator[str]:
    with BrokerProcess(tmp_path / "broker") as broker:
        yield broker.address()


def create_topics(bootstrap: str, *names: str) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    for future in admin.create_topics([NewTopic(name, 2) for name in names]).values():
        future.result(timeout=30)


def produce(bootstrap: str, topic: str, minute: int, count: int) -> None:
    producer = Producer({"bootstrap.servers": bootstrap})
    for i in range(count):
        producer.produce(topic, value=f"{minute}-{i}", timestamp=FIRST_MINUTE_MS + minute * MINUTE_MS + i)
    assert producer.flush(30) == 0


def newest_counts(bootstrap: str, topic: str) -> dict[str, int]:
    """Read all that is there: the high watermarks say where it ends."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "unused", "enable.auto.commit": False})
    partitions = [TopicPartition(topic, p, OFFSET_BEGINNING) for p in range(2)]
    consumer.assign(partitions)
    total = sum(consumer.get_watermark_offsets(p, timeout=30)[1] for p in partitions)
    rows = [json.loads(message.value()) for message in consumer.consume(total, timeout=30)]
    consumer.close()
    assert len(rows) == total
    return {row["minute"]: row["records"] for row in rows}


def run_job(bootstrap: str, checkpoint: Path) -> None:
    run_in_spark_environment(
        *("-m", "pipelines.jobs.counts_per_minute", "--bootstrap", bootstrap),
        *("--source", "clicks", "--target", "counts", "--checkpoint", str(checkpoint)),
    )


@pytest.mark.spark
def test_counts_go_on_where_the_job_stopped(bootstrap: str, tmp_path: Path) -> None:
    create_topics(bootstrap, "clicks", "counts")
    produce(bootstrap, "clicks", minute=0, count=100)
    run_job(bootstrap, tmp_path / "checkpoint")
    assert newest_counts(bootstrap, "counts") == {"2026-01-05T10:00:00Z": 100}

    produce(bootstrap, "clicks", minute=0, count=20)
    produce(bootstrap, "clicks", minute=1, count=7)
    run_job(bootstrap, tmp_path / "checkpoint")
    assert newest_counts(bootstrap, "counts") == {"2026-01-05T10:00:00Z": 120, "2026-01-05T10:01:00Z": 7}
