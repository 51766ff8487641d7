"""ListOffsets for many partitions: asked of all leaders at once, asked again where a leader has moved."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from broker_engine.client.errors import KafkaError, error_for, known_code
from broker_engine.client.fetching import ISOLATION_LEVELS, Isolation
from broker_engine.client.model import FoundOffset, TopicPartition
from broker_engine.errors import ErrorCode
from broker_engine.wire.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)

if TYPE_CHECKING:
    from broker_engine.client.client import Client

LATEST = -1
EARLIEST = -2

Answer = FoundOffset | KafkaError


async def find_offsets(
    client: Client, wanted: Mapping[TopicPartition, int], *, isolation: Isolation = "read_uncommitted"
) -> dict[TopicPartition, Answer]:
    """One attempt: an offset or an error for each. Values of `wanted` are times in ms, LATEST or EARLIEST."""
    found: dict[TopicPartition, Answer] = {}
    by_leader: defaultdict[int, dict[TopicPartition, int]] = defaultdict(dict)
    for target, timestamp_ms in wanted.items():
        try:
            leader = await client.leader_of(target)
        except KafkaError as error:
            found[target] = error
        else:
            by_leader[leader][target] = timestamp_ms
    asked = [_ask(client, leader, part, isolation) for leader, part in by_leader.items()]
    for answers in await asyncio.gather(*asked):
        found.update(answers)
    return found


async def list_offsets(
    client: Client, wanted: Mapping[TopicPartition, int], *, isolation: Isolation = "read_uncommitted"
) -> dict[TopicPartition, FoundOffset]:
    """All of them, or the first error that does not pass by itself."""
    missing, found = dict(wanted), dict[TopicPartition, FoundOffset]()
    async for _ in client.attempts():
        for target, answer in (await find_offsets(client, missing, isolation=isolation)).items():
            if isinstance(answer, FoundOffset):
                found[target] = answer
                del missing[target]
            elif not client.may_retry(answer):
                raise answer
        if not missing:
            return found
    names = ", ".join(map(str, missing))
    raise KafkaError(ErrorCode.REQUEST_TIMED_OUT, f"offsets of {names} were not answered in time")


async def _ask(
    client: Client, leader: int, wanted: Mapping[TopicPartition, int], isolation: Isolation
) -> dict[TopicPartition, Answer]:
    request = ListOffsetsRequest(
        replica_id=-1,
        isolation_level=ISOLATION_LEVELS[isolation],
        topics=list(_topics(client, wanted)),
        timeout_ms=client.config.request_timeout_ms,
    )
    try:
        response = await client.ask(leader, request, ListOffsetsResponse)
    except KafkaError as error:
        for target in wanted:
            client.mark_stale(target.topic)
        return dict.fromkeys(wanted, error)
    return {target: answer for target, answer in _answers(client, response) if target in wanted}


def _topics(client: Client, wanted: Mapping[TopicPartition, int]) -> Iterator[ListOffsetsTopic]:
    by_topic: defaultdict[str, list[ListOffsetsPartition]] = defaultdict(list)
    for target, timestamp_ms in wanted.items():
        view = client.metadata.partition(target)
        epoch = view.leader_epoch if view is not None else -1
        part = ListOffsetsPartition(
            partition_index=target.partition, current_leader_epoch=epoch, timestamp=timestamp_ms
        )
        by_topic[target.topic].append(part)
    for name, parts in by_topic.items():
        yield ListOffsetsTopic(name=name, partitions=parts)


def _answers(client: Client, response: ListOffsetsResponse) -> Iterator[tuple[TopicPartition, Answer]]:
    for topic in response.topics:
        for part in topic.partitions:
            target = TopicPartition(topic.name, part.partition_index)
            if part.error_code == ErrorCode.NONE:
                yield target, FoundOffset(part.offset, part.timestamp, part.leader_epoch)
                continue
            if known_code(part.error_code).is_retriable:
                client.mark_stale(topic.name)
            yield target, error_for(part.error_code, None, f"offsets of {target}")
