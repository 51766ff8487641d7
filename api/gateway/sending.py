"""Sends a request's records and tells what became of each, in the order in which they came."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from django.http import HttpResponse, JsonResponse

from api.gateway.engine_problems import problem_of_engine_error
from api.gateway.produce_body import ProduceRecord
from broker_engine.client import KafkaError, Producer, RecordMetadata

Result = RecordMetadata | KafkaError


async def send_all(producer: Producer, topic: str, records: Sequence[ProduceRecord]) -> list[Result]:
    """One after the other into the buffer, which keeps their order; then wait for all acknowledgements at once.

    A caller that goes away meanwhile does not take back what was handed over.
    """
    handed = [await _hand_over(producer, topic, record) for record in records]
    waiting = [each for each in handed if isinstance(each, asyncio.Future)]
    if waiting:
        await asyncio.wait(waiting)
    return [_outcome(each) if isinstance(each, asyncio.Future) else each for each in handed]


async def _hand_over(
    producer: Producer, topic: str, record: ProduceRecord
) -> asyncio.Future[RecordMetadata] | KafkaError:
    try:
        return await producer.enqueue(
            topic,
            record.value,
            key=record.key,
            partition=record.partition,
            headers=record.headers,
            timestamp_ms=record.timestamp_ms,
        )
    except KafkaError as error:
        return error


def _outcome(future: asyncio.Future[RecordMetadata]) -> Result:
    error = future.exception()
    if error is None:
        return future.result()
    if isinstance(error, KafkaError):
        return error
    raise error


def summary(results: Sequence[Result], topic: str, *, is_unconfirmed: bool) -> HttpResponse:
    """200: all are in; 202: nobody was asked; 207: mixed. All failed: the first one's problem, with all results."""
    told = [_result_json(result, topic) for result in results]
    failed = [result for result in results if isinstance(result, KafkaError)]
    if failed and len(failed) == len(results):
        problem = problem_of_engine_error(failed[0], topic)
        return replace(problem, extra={**problem.extra, "results": told}).response()
    status = 207 if failed else 202 if is_unconfirmed else 200
    return JsonResponse({"results": told}, status=status)


def _result_json(result: Result, topic: str) -> dict[str, Any]:
    if isinstance(result, KafkaError):
        problem = problem_of_engine_error(result, topic)
        return {"error_code": problem.error_code, "message": problem.detail}
    offset = str(result.offset) if result.offset >= 0 else None
    return {"partition": result.partition, "offset": offset, "timestamp": result.timestamp_ms}
