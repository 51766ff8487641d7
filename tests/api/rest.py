"""A caller of the REST API, by session (with CSRF enforced, as in a browser) or by API key."""

from __future__ import annotations

import base64
from dataclasses import dataclass, field
from typing import Any

from django.http import HttpResponse
from django.test import Client

from control_plane.accounts.models import User

BASE = "/api/v1"


@dataclass
class Rest:
    headers: dict[str, str] = field(default_factory=dict)
    client: Client = field(default_factory=lambda: Client(enforce_csrf_checks=True))

    @classmethod
    def of_user(cls, user: User, tenant: str | None = None) -> Rest:
        rest = cls({} if tenant is None else {"X-Highwater-Tenant": tenant})
        rest.client.force_login(user)
        rest.client.get(f"{BASE}/session")
        rest.headers["X-CSRFToken"] = rest.client.cookies["csrftoken"].value
        return rest

    @classmethod
    def of_key(cls, key_id: str, secret: str) -> Rest:
        return cls({"Authorization": "Basic " + base64.b64encode(f"{key_id}:{secret}".encode()).decode()})

    def call(self, method: str, path: str, body: Any = None) -> HttpResponse:
        return self.client.generic(
            method,
            BASE + path,
            b"" if body is None else _json(body),
            content_type="application/json",
            headers=self.headers,
        )

    def get(self, path: str) -> HttpResponse:
        return self.call("GET", path)

    def post(self, path: str, body: Any = None) -> HttpResponse:
        return self.call("POST", path, body)

    def patch(self, path: str, body: Any = None) -> HttpResponse:
        return self.call("PATCH", path, body)

    def delete(self, path: str) -> HttpResponse:
        return self.call("DELETE", path)


def _json(body: Any) -> bytes:
    import json

    return body if isinstance(body, bytes) else json.dumps(body).encode()


def problem(response: HttpResponse, status: int) -> dict[str, Any]:
    """The problem document of an answer, after checking that it is one."""
    assert response.status_code == status, response.content
    assert response["Content-Type"] == "application/problem+json"
    body: dict[str, Any] = response.json()  # type: ignore[attr-defined]
    assert body["status"] == status
    assert body["message"] == body["detail"]
    assert body["error_code"] // 10_000 == status // 100
    return body


def wrong_fields(response: HttpResponse) -> list[str]:
    return [error["field"] for error in problem(response, 400)["errors"]]
