"""The stateless fetch: from a query to one partition's records. Nothing is kept between calls."""

from __future__ import annotations

from dataclasses import replace

from api.gateway.fetch_query import FetchQuery
from api.gateway.record_json import record_size_bytes
from broker_engine.client import Client, FetchedPartition, TopicPartition
from broker_engine.client.offsets import EARLIEST, LATEST, list_offsets


async def fetch(client: Client, topic: str, partition: int, query: FetchQuery) -> FetchedPartition:
    offset = await _start(client, TopicPartition(topic, partition), query)
    fetched = await client.fetch_once(
        topic,
        partition,
        offset,
        max_bytes=query.bytes_max,
        max_wait_ms=query.wait_ms,
        max_records=query.record_count_max,
    )
    return _within(fetched, query.bytes_max)


async def _start(client: Client, target: TopicPartition, query: FetchQuery) -> int:
    if query.offset is not None:
        return query.offset
    if query.tail is not None:
        first, end = await _end(client, target, EARLIEST), await _end(client, target, LATEST)
        return max(first, end - query.tail)
    if query.timestamp_ms is not None:
        found = await _end(client, target, query.timestamp_ms)
        return found if found >= 0 else await _end(client, target, LATEST)
    return await _end(client, target, EARLIEST if query.edge == "earliest" else LATEST)


async def _end(client: Client, target: TopicPartition, wanted: int) -> int:
    return (await list_offsets(client, {target: wanted}))[target].offset


def _within(fetched: FetchedPartition, bytes_max: int) -> FetchedPartition:
    """A stored batch comes whole and may unpack to much more than was asked for. At least one record stays."""
    size_bytes = 0
    for index, record in enumerate(fetched.records):
        size_bytes += record_size_bytes(record)
        if size_bytes > bytes_max and index > 0:
            return replace(fetched, records=fetched.records[:index], next_offset=record.offset)
    return fetched
