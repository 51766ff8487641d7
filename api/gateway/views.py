"""Produce, stateless fetch, and tickets for WebSockets."""

from __future__ import annotations

from typing import Any

from asgiref.sync import sync_to_async
from django.http import HttpRequest, HttpResponse, JsonResponse

from api.authentication import Caller
from api.gateway import runtime, tickets
from api.gateway.data_plane import data_plane
from api.gateway.engine_problems import too_large
from api.gateway.fetch_query import FetchQuery, QueryError, parse_fetch_query
from api.gateway.produce_body import BODY_BYTES_MAX, Acks, ProduceBody, parse_acks, parse_json, parse_ndjson
from api.gateway.reading import fetch
from api.gateway.record_json import record_json
from api.gateway.sending import send_all, summary
from api.problems import Problem, ProblemError
from broker_engine.client import FetchedPartition
from control_plane.tenants.models import Role

JSON_TYPES = ("application/json", "")
NDJSON_TYPES = ("application/x-ndjson", "application/jsonl")
PARSE_IN_THREAD_BYTES = 64 << 10


@data_plane("POST")
async def produce(request: HttpRequest, caller: Caller, topic: str) -> HttpResponse:
    caller.require(Role.DEVELOPER)
    body = await _produce_body(request)
    acks: Acks = body.acks if body.acks is not None else -1
    async with runtime.pool().lease(caller.tenant.pk, caller.principal) as own:
        # Asked for first: a topic is never born from a REST call with a misspelt name.
        await own.client.topic(topic)
        results = await send_all(own.producer(acks), topic, body.records)
    return summary(results, topic, is_unconfirmed=acks == 0)


async def _produce_body(request: HttpRequest) -> ProduceBody:
    unknown = [name for name in request.GET if name != "acks"]
    if unknown:
        raise QueryError(unknown[0], "unknown parameter; known is acks")
    media_type = (request.content_type or "").lower()
    if media_type not in (*JSON_TYPES, *NDJSON_TYPES):
        raise ProblemError(_unsupported_media_type(media_type))
    # read(), not .body: Django's own limit for bodies in memory is meant for forms.
    data = request.read(BODY_BYTES_MAX + 1)
    if len(data) > BODY_BYTES_MAX:
        raise ProblemError(too_large(f"a request body holds at most {BODY_BYTES_MAX} bytes"))
    body = await _parsed(data, is_ndjson=media_type in NDJSON_TYPES)
    if "acks" in request.GET and body.acks is None:
        body.acks = parse_acks(request.GET["acks"])
    return body


async def _parsed(data: bytes, *, is_ndjson: bool) -> ProduceBody:
    def parse() -> ProduceBody:
        return parse_ndjson(data.split(b"\n")) if is_ndjson else parse_json(data)

    if len(data) < PARSE_IN_THREAD_BYTES:
        return parse()
    return await sync_to_async(parse, thread_sensitive=False)()


def _unsupported_media_type(media_type: str) -> Problem:
    return Problem(
        slug="unsupported-media-type",
        title="Unsupported media type",
        status=415,
        error_code=41501,
        detail=f"Send application/json or application/x-ndjson, not {media_type[:80]!r}",
    )


@data_plane("GET")
async def fetch_records(request: HttpRequest, caller: Caller, topic: str, partition: int) -> HttpResponse:
    query = parse_fetch_query({name: request.GET[name] for name in request.GET})
    async with runtime.pool().lease(caller.tenant.pk, caller.principal) as own:
        fetched = await fetch(own.client, topic, partition, query)
    return JsonResponse(_fetched_json(fetched, query))


def _fetched_json(fetched: FetchedPartition, query: FetchQuery) -> dict[str, Any]:
    return {
        "records": [record_json(record, query.key_format, query.value_format) for record in fetched.records],
        "next_offset": str(fetched.next_offset),
        "high_watermark": str(fetched.high_watermark),
        "last_stable_offset": str(fetched.last_stable_offset),
        "log_start_offset": str(fetched.log_start_offset),
    }


@data_plane("POST")
async def ws_tickets(request: HttpRequest, caller: Caller) -> HttpResponse:
    ticket = await sync_to_async(tickets.issue)(caller)
    return JsonResponse({"ticket": ticket, "expires_in_s": tickets.LIFE_S}, headers={"Cache-Control": "no-store"})
