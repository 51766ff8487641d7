"""RFC 9457 problem documents: what every error of /api/v1 looks like, whoever raises it.

`error_code` and `message` repeat the status and the detail in the shape that Confluent's clients read. Framework-free
but for the last step, an HttpResponse: DRF views, async views and WebSocket code share it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from django.http import HttpResponse

MEDIA_TYPE = "application/problem+json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    slug: str  # the last part of `type`
    title: str
    status: int
    error_code: int  # five digits: the status and a counter, Confluent's where it has one
    detail: str = ""
    extra: Mapping[str, Any] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)

    def body(self) -> dict[str, Any]:
        detail = self.detail or self.title
        return {
            "type": f"/problems/{self.slug}",
            "title": self.title,
            "status": self.status,
            "detail": detail,
            "error_code": self.error_code,
            "message": detail,
            **self.extra,
        }

    def response(self) -> HttpResponse:
        return HttpResponse(
            json.dumps(self.body()), status=self.status, content_type=MEDIA_TYPE, headers=dict(self.headers)
        )


class ProblemError(Exception):
    """Raise a problem from anywhere under /api/v1."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem.detail or problem.title)
        self.problem = problem


def unauthenticated(detail: str, *, challenge: str) -> Problem:
    return Problem(
        slug="unauthenticated",
        title="Not signed in",
        status=401,
        error_code=40101,
        detail=detail,
        headers={"WWW-Authenticate": challenge},
    )


def forbidden(detail: str) -> Problem:
    return Problem(slug="forbidden", title="Not allowed", status=403, error_code=40301, detail=detail)


def csrf_failed(detail: str) -> Problem:
    return Problem(slug="csrf", title="The CSRF check failed", status=403, error_code=40302, detail=detail)


def not_found(detail: str, *, error_code: int = 40401) -> Problem:
    return Problem(slug="not-found", title="Not found", status=404, error_code=error_code, detail=detail)


def conflict(detail: str) -> Problem:
    return Problem(slug="conflict", title="In the way of what is there", status=409, error_code=40902, detail=detail)


def bad_request(detail: str, *, error_code: int = 40001) -> Problem:
    return Problem(slug="bad-request", title="Not understood", status=400, error_code=error_code, detail=detail)


def invalid_fields(errors: Mapping[str, str]) -> Problem:
    """Each wrong field by name. The first one is in the detail, for those who read only that."""
    name, message = next(iter(errors.items()))
    return Problem(
        slug="invalid-fields",
        title="Some fields are wrong",
        status=400,
        error_code=40002,
        detail=f"{name}: {message}" if name else message,
        extra={"errors": [{"field": name, "message": message} for name, message in errors.items()]},
    )


def too_large(detail: str) -> Problem:
    return Problem(slug="too-large", title="Too large", status=413, error_code=41301, detail=detail)


def too_many_tries(wait_s: int) -> Problem:
    return Problem(
        slug="too-many-tries",
        title="Too many failed tries",
        status=429,
        error_code=42901,
        detail=f"Too many failed tries to sign in: wait {wait_s} s",
        headers={"Retry-After": str(wait_s)},
    )


def policy_violation(detail: str, violations: list[dict[str, Any]], verdicts: list[dict[str, Any]]) -> Problem:
    return Problem(
        slug="policy-violation",
        title="Topic policy",
        status=422,
        error_code=42290,
        detail=detail,
        extra={"violations": violations, "verdicts": verdicts},
    )


def refused_by_engine(detail: str) -> Problem:
    return Problem(slug="refused-by-engine", title="The engine refused it", status=422, error_code=42291, detail=detail)


def engine_unavailable(detail: str) -> Problem:
    return Problem(
        slug="engine-unavailable",
        title="The engine does not answer",
        status=503,
        error_code=50003,
        detail=detail,
        headers={"Retry-After": "2"},
    )


def internal_error() -> Problem:
    return Problem(
        slug="internal-error",
        title="Something broke on our side",
        status=500,
        error_code=50001,
        detail="The request failed for a reason that is in the server's log",
    )
