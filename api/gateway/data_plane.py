"""What every view of the data plane shares: the method, who is calling, and errors as problem documents.

Plain async views: they run on the event loop that owns the clients (contracts.md section 10). Django cancels a view
whose client has gone away, so a long poll ends with its caller.
"""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable, Coroutine
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.views.decorators.csrf import csrf_exempt

from api import problems
from api.authentication import authenticate_request_async
from api.exceptions import problem_of
from api.gateway.engine_problems import busy, problem_of_engine_error, too_large
from api.gateway.fetch_query import QueryError
from api.gateway.pool import PoolFull
from api.gateway.produce_body import BodyError, TooManyRecords
from api.problems import Problem
from broker_engine.client import KafkaError

log = logging.getLogger(__name__)

View = Callable[..., Coroutine[Any, Any, HttpResponse]]


def data_plane(method: str) -> Callable[[View], View]:
    """The view gets the caller as its second argument. CSRF is checked with the session, not for API keys."""

    def decorate(view: View) -> View:
        @csrf_exempt
        @functools.wraps(view)
        async def answer(request: HttpRequest, **parts: Any) -> HttpResponse:
            if request.method != method:
                return _method_not_allowed(method).response()
            try:
                caller = await authenticate_request_async(request)
                return await view(request, caller, **parts)
            except Exception as error:
                return _problem(error, parts).response()

        return answer

    return decorate


def _problem(error: Exception, parts: dict[str, Any]) -> Problem:
    match error:
        case KafkaError():
            return problem_of_engine_error(error, str(parts.get("topic", "")))
        case TooManyRecords():
            return too_large(error.message)
        case BodyError() | QueryError():
            return problems.invalid_fields({error.field: error.message})
        case PoolFull():
            return busy("The gateway serves as many callers as it can: try again in a moment")
    known = problem_of(error)
    if known is None:
        log.error("unhandled in the data plane", exc_info=error)
    return known or problems.internal_error()


def _method_not_allowed(method: str) -> Problem:
    return Problem(
        slug="method-not-allowed",
        title="Method not allowed",
        status=405,
        error_code=40501,
        detail=f"Only {method} is answered here",
        headers={"Allow": method},
    )
