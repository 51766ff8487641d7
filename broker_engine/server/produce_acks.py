"""What the short way of Produce (produce_lane.py) answers once everybody in sync has it, or will not have it.

Each wait is begun at once, not when it is first awaited: a change of leaders in between ends it too.
"""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Awaitable, Callable, Sequence
from functools import partial

from broker_engine.handlers.api import Answer
from broker_engine.records.header import NO_TIMESTAMP
from broker_engine.server.acks import AckWait
from broker_engine.server.local_partition import Appended, AppendedRun, LocalPartition
from broker_engine.server.outcome import Outcome
from broker_engine.server.produce_shape import Place, Written
from broker_engine.wire.framing import encode_response, frame
from broker_engine.wire.messages.produce import PartitionProduceResponse, ProduceResponse

_ACKS_ALL = -1
_CORRELATION = struct.Struct(">4xi")
"""Behind the length of the frame."""


def acked(place: Place, written: Sequence[Written], answer: bytes) -> Awaitable[Outcome]:
    """`answer`, or another one where something of it did not come to pass."""
    return _when_acked(*_expect(place, written), place, answer)


def run_acked(
    place: Place, partition: LocalPartition, run: AppendedRun, correlation_ids: list[int], answers: bytes
) -> Awaitable[Outcome]:
    """As `acked`, for several requests: one wait, for the last of them."""
    wait, last = AckWait(asyncio.get_running_loop()), PartitionProduceResponse()
    partition.when_acked(run.end_offset, wait.expect(last))
    _start_timer(wait, place)
    return _when_run_acked(wait, last, answers, partial(_own_answers, place, partition, run, correlation_ids))


def acked_with_rest(
    place: Place,
    written: Sequence[Written],
    correlation_id: int,
    rest: ProduceResponse | Awaitable[Answer[ProduceResponse]],
) -> Awaitable[Outcome]:
    """One answer for what was written, and for the rest, which took the ordinary way."""
    return _when_both(*_expect(place, written), place, correlation_id, rest)


def _expect(place: Place, written: Sequence[Written]) -> tuple[AckWait, list[PartitionProduceResponse]]:
    wait = AckWait(asyncio.get_running_loop())
    responses = [_response(partition, appended) for partition, appended in written]
    if place.acks == _ACKS_ALL:
        for (partition, appended), response in zip(written, responses, strict=True):
            partition.when_acked(appended.end_offset, wait.expect(response))
    _start_timer(wait, place)
    return wait, responses


def _start_timer(wait: AckWait, place: Place) -> None:
    if not wait.is_over:
        wait.start_timer(max(0, place.timeout_ms) / 1000)


def _response(partition: LocalPartition, appended: Appended) -> PartitionProduceResponse:
    return PartitionProduceResponse(
        index=partition.index,
        base_offset=appended.base_offset,
        log_append_time_ms=appended.log_append_time_ms,
        log_start_offset=appended.log_start_offset,
    )


def _own_answers(
    place: Place, partition: LocalPartition, run: AppendedRun, correlation_ids: list[int], error_code: int
) -> list[bytes]:
    """The run's end was not acknowledged: each request hears what became of its own batch."""
    answers, base_offset = [], run.base_offset
    for correlation_id, record_count in zip(correlation_ids, run.record_counts, strict=True):
        appended = Appended(base_offset, base_offset + record_count, NO_TIMESTAMP, run.log_start_offset, record_count)
        response = _response(partition, appended)
        response.error_code = error_code if partition.high_watermark < appended.end_offset else 0
        answers.append(place.encoded(correlation_id, [response]))
        base_offset += record_count
    return answers


async def _when_acked(wait: AckWait, responses: list[PartitionProduceResponse], place: Place, answer: bytes) -> Outcome:
    if not wait.is_over:
        await wait.wait()
    if any(response.error_code for response in responses):
        answer = place.encoded(_CORRELATION.unpack_from(answer)[0], responses)
    return Outcome((answer,))


async def _when_run_acked(
    wait: AckWait, last: PartitionProduceResponse, answers: bytes, own_answers: Callable[[int], list[bytes]]
) -> Outcome:
    if not wait.is_over:
        await wait.wait()
    return Outcome(own_answers(last.error_code) if last.error_code else (answers,))


async def _when_both(
    wait: AckWait,
    responses: list[PartitionProduceResponse],
    place: Place,
    correlation_id: int,
    rest: ProduceResponse | Awaitable[Answer[ProduceResponse]],
) -> Outcome:
    if not wait.is_over:
        await wait.wait()
    answer = rest if isinstance(rest, ProduceResponse) else await rest
    assert isinstance(answer, ProduceResponse), "acks=0 is not answered"
    topic = answer.responses[0]
    topic.partition_responses = [*responses, *topic.partition_responses]
    return Outcome(frame(encode_response(correlation_id, answer, place.version)))
