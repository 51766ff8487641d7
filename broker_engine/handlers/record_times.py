"""RecordTimes (key 10007, private), version 0: the timestamps of the first records at or after some offsets."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING

from broker_engine.errors import BrokerError
from broker_engine.handlers.api import Api, Call, Scope
from broker_engine.server.local_partition import LocalPartition
from broker_engine.telemetry.schema import UNREAD_NONE, UNREAD_UNKNOWN
from broker_engine.wire.messages.internal_record_times import (
    RecordTimesPlace,
    RecordTimesRequest,
    RecordTimesResponse,
)

if TYPE_CHECKING:
    from broker_engine.server.broker import Broker


async def handle(request: RecordTimesRequest, call: Call) -> RecordTimesResponse:
    return RecordTimesResponse(timestamps=await times_on(call.broker, request.places))


def refuse(request: RecordTimesRequest, error: BrokerError) -> RecordTimesResponse:
    return RecordTimesResponse(error_code=error.code)


async def times_on(broker: Broker, places: Sequence[RecordTimesPlace]) -> list[int]:
    """Any replica will do: what is below its high watermark is the same on all of them."""
    times, to_read = [UNREAD_UNKNOWN] * len(places), list[tuple[int, LocalPartition, int]]()
    for number, place in enumerate(places):
        local = broker.partitions.find(place.topic_id, place.partition_index)
        if local is None or local.is_retired:
            continue
        times[number] = UNREAD_NONE
        if place.offset < local.high_watermark:
            to_read.append((number, local, place.offset))
    if to_read:
        for number, timestamp in await asyncio.to_thread(_read_all, to_read):
            times[number] = timestamp
    return times


def _read_all(places: Sequence[tuple[int, LocalPartition, int]]) -> list[tuple[int, int]]:
    """In a thread: batches are read and may have to be decompressed."""
    return [(number, _read(local, offset)) for number, local, offset in places]


def _read(local: LocalPartition, offset: int) -> int:
    log = local.log
    try:
        found = log.first_record_from(max(offset, log.log_start_offset), local.high_watermark)
    except (BrokerError, ValueError):  # offline, or retention took the segment away under us: asked again
        return UNREAD_UNKNOWN
    return UNREAD_NONE if found is None else max(0, found.timestamp)


API = Api(request=RecordTimesRequest, scope=Scope.BROKERS, handle=handle, refuse=refuse)
