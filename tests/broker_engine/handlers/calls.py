"""Short words for what most handler tests do."""

from __future__ import annotations

import itertools
import time
from typing import Any
from uuid import UUID

from broker_engine.records.batch import Record, decode_records, iter_batches
from broker_engine.records.builder import NewRecord, build_batch
from broker_engine.wire.messages.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from broker_engine.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from broker_engine.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from broker_engine.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from tests.broker_engine.raw_client import RawClient

_numbers = itertools.count(1)


def new_name(prefix: str = "topic") -> str:
    return f"{prefix}-{next(_numbers)}"


def create(client: RawClient, name: str | None = None, *, partitions: int = 1, **configs: str) -> str:
    """A topic; configs with `_` for `.`."""
    name = name or new_name()
    topic = CreatableTopic(
        name=name,
        num_partitions=partitions,
        replication_factor=-1,
        configs=[CreatableTopicConfig(name=key.replace("_", "."), value=value) for key, value in configs.items()],
    )
    (result,) = client.call(CreateTopicsRequest(topics=[topic]), 7).topics
    assert result.error_code == 0, result
    return name


def batch_of(*values: bytes, now_ms: int | None = None, **options: Any) -> bytes:
    now_ms = int(time.time() * 1000) if now_ms is None else now_ms
    return build_batch([NewRecord(now_ms, None, value) for value in values], **options)


def produce_request(topic: str, records: bytes, *, partition: int = 0, acks: int = -1) -> ProduceRequest:
    data = [PartitionProduceData(index=partition, records=records)]
    return ProduceRequest(acks=acks, timeout_ms=10_000, topic_data=[TopicProduceData(name=topic, partition_data=data)])


def produce(
    client: RawClient, topic: str, records: bytes, *, partition: int = 0, acks: int = -1, version: int = 9
) -> Any:
    """The partition's answer."""
    response = client.call(produce_request(topic, records, partition=partition, acks=acks), version)
    return response.responses[0].partition_responses[0]


def fetch_request(topic: str, offset: int = 0, *, partition: int = 0, **options: Any) -> FetchRequest:
    asked = FetchPartition(
        partition=partition, fetch_offset=offset, partition_max_bytes=options.pop("partition_max_bytes", 1 << 20)
    )
    for name in ("current_leader_epoch", "last_fetched_epoch"):
        if name in options:
            setattr(asked, name, options.pop(name))
    settings: dict[str, Any] = {"max_wait_ms": 0, "min_bytes": 1, "max_bytes": 50 << 20, **options}
    return FetchRequest(topics=[FetchTopic(topic=topic, partitions=[asked])], **settings)


def fetch(client: RawClient, topic: str, offset: int = 0, *, version: int = 12, **options: Any) -> Any:
    """The partition's answer."""
    return client.call(fetch_request(topic, offset, **options), version).responses[0].partitions[0]


def values_of(partition: Any) -> list[bytes | None]:
    return [record.value for record in records_of(partition)]


def records_of(partition: Any) -> list[Record]:
    batches = iter_batches(partition.records or b"")
    return [record for batch in batches for record in decode_records(batch, max_bytes=1 << 20)]


def describe(client: RawClient, name: str) -> Any:
    request = MetadataRequest(topics=[MetadataRequestTopic(name=name)], allow_auto_topic_creation=False)
    (topic,) = client.call(request, 12).topics
    return topic


def topic_id_of(client: RawClient, name: str) -> UUID:
    topic_id: UUID = describe(client, name).topic_id
    return topic_id
