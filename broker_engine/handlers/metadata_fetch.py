"""Fetch (key 1) on the controller's listener: of the metadata log here, of every other partition in replica_fetch.py.

A long poll ends when the log grows, the high watermark moves or the leader changes. Nobody but nodes reads this log.
"""

from __future__ import annotations

from collections.abc import Awaitable

from broker_engine.errors import BrokerError
from broker_engine.handlers import replica_fetch
from broker_engine.handlers.api import Api, Call, Scope
from broker_engine.server.raft_wire import (
    FETCH_BYTES_MAX,
    check_cluster,
    fetch_response,
    is_metadata_fetch,
    read_fetch_request,
)
from broker_engine.wire.messages.fetch import FetchRequest, FetchResponse

_WAIT_MS_MAX = 5_000


def handle(request: FetchRequest, call: Call) -> FetchResponse | Awaitable[FetchResponse]:
    return _fetch_metadata(request, call) if is_metadata_fetch(request) else replica_fetch.handle(request, call)


async def _fetch_metadata(request: FetchRequest, call: Call) -> FetchResponse:
    check_cluster(request.cluster_id, call.broker.cluster_id)
    node = call.broker.metadata.node
    answer, records = await node.answer_fetch(
        read_fetch_request(request),
        max_wait_ms=min(request.max_wait_ms, _WAIT_MS_MAX),
        max_bytes=min(request.max_bytes, FETCH_BYTES_MAX),
    )
    return fetch_response(answer, records, node.core.log.start_offset)


def refuse(request: FetchRequest, error: BrokerError) -> FetchResponse:
    if is_metadata_fetch(request):
        return FetchResponse(error_code=error.code)
    return replica_fetch.API.refuse(request, error)


API = Api(
    request=FetchRequest,
    scope=Scope.BROKERS,
    handle=handle,
    refuse=refuse,
    max_version=replica_fetch.API.max_version,
    is_next_allowed=True,
    is_cancelled_with_connection=True,
)
