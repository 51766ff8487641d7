"""Where exceptions meet the wire: each becomes a problem document here and nowhere else."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from typing import Any

from django.conf import settings
from django.core.exceptions import RequestDataTooBig
from django.http import Http404, HttpResponse
from rest_framework import exceptions as drf

from api import problems
from api.problems import Problem, ProblemError
from control_plane import refusals
from control_plane.engine.interface import EngineRefused, EngineUnavailable

log = logging.getLogger(__name__)


def handle_exception(error: Exception, context: Mapping[str, Any]) -> HttpResponse:
    """DRF's hook. A bug is logged whole and told only as that."""
    problem = problem_of(error)
    if problem is None:
        view = type(context.get("view")).__name__
        log.error("unhandled in %s", view, exc_info=error)
        problem = problems.internal_error()
    return problem.response()


def problem_of(error: Exception) -> Problem | None:
    """The problem that an expected exception stands for; None for a bug."""
    if isinstance(error, ProblemError):
        return error.problem
    if isinstance(error, refusals.Refusal):
        return _of_refusal(error)
    if isinstance(error, EngineUnavailable):
        return problems.engine_unavailable(str(error))
    if isinstance(error, EngineRefused):
        return problems.refused_by_engine(f"{error.code}: {error}")
    if isinstance(error, RequestDataTooBig):
        return problems.too_large(f"A request body holds at most {settings.DATA_UPLOAD_MAX_MEMORY_SIZE} bytes here")
    if isinstance(error, drf.APIException | Http404):
        return _of_framework(error)
    return None


def _of_refusal(error: refusals.Refusal) -> Problem | None:
    match error:
        case refusals.NotFound():
            return problems.not_found(str(error))
        case refusals.Conflict():
            return problems.conflict(str(error))
        case refusals.Invalid():
            return problems.invalid_fields({error.field: str(error)})
        case refusals.Forbidden():
            return problems.forbidden(str(error))
        case refusals.PolicyViolation():
            return _of_policy(error)
        case refusals.RefusedByEngine():
            return problems.refused_by_engine(str(error))
    return None


def _of_policy(error: refusals.PolicyViolation) -> Problem:
    verdicts = [verdict_json(verdict) for verdict in error.verdicts]
    return problems.policy_violation(str(error), [verdict for verdict in verdicts if not verdict["ok"]], verdicts)


def verdict_json(verdict: Any) -> dict[str, Any]:
    return {name: value for name, value in asdict(verdict).items() if value is not None}


def _of_framework(error: drf.APIException | Http404) -> Problem:
    match error:
        case drf.ValidationError():
            return problems.invalid_fields(dict(_flat(error.detail)))
        case drf.NotAuthenticated() | drf.AuthenticationFailed():
            return problems.unauthenticated(str(error.detail), challenge=SESSION_CHALLENGE)
        case drf.PermissionDenied():
            return problems.forbidden(str(error.detail))
        case drf.NotFound() | Http404():
            return problems.not_found("There is nothing here")
        case drf.ParseError():
            return problems.bad_request(str(error.detail))
    return _of_status(error)


def _of_status(error: drf.APIException) -> Problem:
    status = error.status_code
    return Problem(
        slug=error.default_code.replace("_", "-"),
        title=str(error.default_detail).rstrip("."),
        status=status,
        error_code=status * 100 + 1,
        detail=str(error.detail),
    )


SESSION_CHALLENGE = 'Session realm="highwater"'  # no scheme that a browser would open a dialog for


def _flat(detail: Any, path: str = "") -> Iterator[tuple[str, str]]:
    """DRF's tree of messages as (dotted field, message)."""
    if isinstance(detail, Mapping):
        for name, below in detail.items():
            inner = path if name == "non_field_errors" else f"{path}.{name}" if path else str(name)
            yield from _flat(below, inner)
    elif isinstance(detail, list) and detail and not isinstance(detail[0], str):
        for index, below in enumerate(detail):
            yield from _flat(below, f"{path}[{index}]")
    else:
        yield path, str(detail[0] if isinstance(detail, list) and detail else detail)
