"""Wire codec: microseconds per message, best of nine runs. `python -m benchmarks.bench_wire`."""

from __future__ import annotations

import timeit
from collections.abc import Callable
from uuid import UUID

from broker_engine.wire.framing import encode_request, parse_request_header
from broker_engine.wire.messages.fetch import FetchableTopicResponse, FetchResponse, PartitionData
from broker_engine.wire.messages.metadata import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from broker_engine.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData


def measure(name: str, call: Callable[[], object]) -> None:
    timer = timeit.Timer(call)
    count = max(1, timer.autorange()[0] // 5)
    print(f"{name:42}{min(timer.repeat(9, count)) / count * 1e6:10.2f} µs")


def produce_request() -> ProduceRequest:
    partition = PartitionProduceData(index=3, records=bytes(16384))
    return ProduceRequest(acks=-1, topic_data=[TopicProduceData(name="orders", partition_data=[partition])])


def fetch_response(records: bytes) -> FetchResponse:
    partitions = [PartitionData(partition_index=i, aborted_transactions=None, records=records) for i in range(10)]
    return FetchResponse(responses=[FetchableTopicResponse(topic="orders", partitions=partitions)])


def metadata_response() -> MetadataResponse:
    replicas = [1, 2, 3]
    partitions = [
        MetadataResponsePartition(partition_index=i, leader_id=1, replica_nodes=replicas, isr_nodes=replicas)
        for i in range(10)
    ]
    topics = [
        MetadataResponseTopic(name=f"topic-{i:04}", topic_id=UUID(int=i + 1), partitions=partitions) for i in range(100)
    ]
    brokers = [MetadataResponseBroker(node_id=i, host="127.0.0.1", port=9092 + i) for i in replicas]
    return MetadataResponse(cluster_id="c", brokers=brokers, topics=topics)


def main() -> None:
    produce, metadata = produce_request(), metadata_response()
    full, empty = fetch_response(bytes(1 << 20)), fetch_response(b"")
    produce_body, metadata_body = memoryview(produce.encode(9)), memoryview(metadata.encode(12))
    full_body, empty_body = memoryview(full.encode(12)), memoryview(empty.encode(12))
    frame = memoryview(b"".join(encode_request(1, "client", produce, 9)))
    measure("request header", lambda: parse_request_header(frame))
    measure("Produce request v9, 16 KB: decode", lambda: ProduceRequest.decode(produce_body, 9))
    measure("Produce request v9, 16 KB: parts", lambda: produce.encode_parts(9))
    measure("Fetch response v12, 10 x 1 MB: decode", lambda: FetchResponse.decode(full_body, 12))
    measure("Fetch response v12, 10 x 1 MB: parts", lambda: full.encode_parts(12))
    measure("Fetch response v12, 10 empty: decode", lambda: FetchResponse.decode(empty_body, 12))
    measure("Fetch response v12, 10 empty: encode", lambda: empty.encode(12))
    measure("Metadata response v12, 100 x 10: decode", lambda: MetadataResponse.decode(metadata_body, 12))
    measure("Metadata response v12, 100 x 10: encode", lambda: metadata.encode(12))


if __name__ == "__main__":
    main()
