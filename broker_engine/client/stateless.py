"""One fetch from one partition with nothing kept between calls: what REST needs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from broker_engine.client.errors import ConnectionFailed, KafkaError, OffsetOutOfRange, error_for, known_code
from broker_engine.client.fetching import FetchedBatches, FetchSpot, Isolation, answers, fetch_request, version_limit
from broker_engine.client.model import FetchedPartition, FoundOffset, Record, TopicPartition
from broker_engine.client.offsets import EARLIEST, LATEST, find_offsets
from broker_engine.errors import ErrorCode
from broker_engine.wire.messages.fetch import API as FETCH
from broker_engine.wire.messages.fetch import FetchResponse, PartitionData

if TYPE_CHECKING:
    from broker_engine.client.client import Client


@dataclass(frozen=True, slots=True)
class FetchQuery:
    target: TopicPartition
    offset: int
    max_bytes: int
    max_wait_ms: int
    min_bytes: int
    max_records: int | None
    isolation: Isolation


async def fetch_once(client: Client, query: FetchQuery) -> FetchedPartition:
    last_error = KafkaError(ErrorCode.REQUEST_TIMED_OUT, f"fetch from {query.target}")
    async for _ in client.attempts():
        try:
            spot = await _spot(client, query)
            return _read(
                spot, await _ask_leader(client, spot, query), query, client.config.decompressed_batch_bytes_max
            )
        except KafkaError as error:
            if not client.may_retry(error):
                raise
            last_error = error
            client.mark_stale(query.target.topic)
    raise last_error


async def _spot(client: Client, query: FetchQuery) -> FetchSpot:
    await client.leader_of(query.target)
    topic, view = client.metadata.topic(query.target.topic), client.metadata.partition(query.target)
    assert topic is not None, "leader_of has just seen it"
    assert view is not None, "leader_of has just seen it"
    return FetchSpot(query.target, topic.topic_id, query.offset, view.leader_epoch, query.max_bytes)


async def _ask_leader(client: Client, spot: FetchSpot, query: FetchQuery) -> PartitionData:
    request = fetch_request(
        [spot],
        max_wait_ms=query.max_wait_ms,
        min_bytes=query.min_bytes,
        max_bytes=query.max_bytes,
        isolation=query.isolation,
    )
    address = client.address_of(await client.leader_of(query.target))
    async with client.links.lease(address) as connection:
        version = connection.version_of(FETCH, at_most=version_limit([spot]))
        timeout_ms = query.max_wait_ms + client.config.request_timeout_ms
        response = await connection.ask(request, FetchResponse, version=version, timeout_ms=timeout_ms)
    if response.error_code != ErrorCode.NONE:
        raise error_for(response.error_code, None, f"fetch from {query.target}")
    for _, part in answers(response, [spot]):
        return await _checked(client, part, query)
    raise ConnectionFailed(str(address), f"the answer to a fetch does not speak of {query.target}")


async def _checked(client: Client, part: PartitionData, query: FetchQuery) -> PartitionData:
    if part.error_code == ErrorCode.OFFSET_OUT_OF_RANGE:
        raise await _out_of_range(client, query)
    if part.error_code != ErrorCode.NONE:
        raise KafkaError(known_code(part.error_code), f"fetch from {query.target} at offset {query.offset}")
    return part


async def _out_of_range(client: Client, query: FetchQuery) -> OffsetOutOfRange:
    ends = []
    for wanted in (EARLIEST, LATEST):
        found = (await find_offsets(client, {query.target: wanted}))[query.target]
        ends.append(found.offset if isinstance(found, FoundOffset) else -1)
    text = f"offset {query.offset} is not in {query.target}, which holds {ends[0]} to {ends[1]}"
    return OffsetOutOfRange(text, log_start_offset=ends[0], high_watermark=ends[1])


def _read(spot: FetchSpot, part: PartitionData, query: FetchQuery, decompressed_bytes_max: int) -> FetchedPartition:
    batches = FetchedBatches(spot, part, isolation=query.isolation, decompressed_bytes_max=decompressed_bytes_max)
    records: list[Record] = []
    while query.max_records is None or len(records) < query.max_records:
        more = batches.next_records()
        if more is None:
            break
        records += more
    next_offset = batches.next_offset
    if query.max_records is not None and len(records) > query.max_records:
        next_offset = records[query.max_records].offset
        del records[query.max_records :]
    return FetchedPartition(records, part.high_watermark, part.last_stable_offset, part.log_start_offset, next_offset)
