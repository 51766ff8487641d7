"""Pages, static files, headers and health, over HTTP."""

from __future__ import annotations

from collections.abc import Iterator

import httpx
import pytest
from django.conf import settings
from django.utils.module_loading import import_string

from tests.web.stack import Stack, wait_until
from web.pages import DASHBOARD


@pytest.fixture
def client(stack: Stack) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=stack.url) as client:
        yield client


@pytest.mark.parametrize("path", ["/", "/topics/orders", "/keys"])
def test_client_side_routes_get_the_dashboard_or_how_to_build_it(client: httpx.Client, path: str) -> None:
    answer = client.get(path)
    if DASHBOARD.exists():
        assert answer.status_code == 200
        assert answer.headers["cache-control"] == "no-cache"
        assert b'<div id="root">' in answer.content
    else:
        assert answer.status_code == 503
        assert "make frontend" in answer.text
    assert answer.headers["content-type"].startswith("text/html")


def test_every_answer_carries_the_content_security_policy(client: httpx.Client) -> None:
    for path in ("/", "/healthz", "/api/v1/nope", "/static/nope"):
        assert "default-src 'self'" in client.get(path).headers["content-security-policy"]
        assert "unsafe" not in client.get(path).headers["content-security-policy"]


def test_static_files_are_served_and_missing_ones_are_404(client: httpx.Client) -> None:
    answer = client.get("/static/drf_spectacular_sidecar/swagger-ui-dist/swagger-ui.css")
    assert answer.status_code == 200
    assert "max-age=60" in answer.headers["cache-control"]
    again = client.get(answer.url, headers={"If-None-Match": answer.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")
    assert client.head(answer.url).content == b""
    assert client.get("/static/nope.css").status_code == 404
    assert client.get("/static/%2e%2e/%2e%2e/manage.py").status_code == 404


def test_hashed_assets_are_cached_for_ever(client: httpx.Client) -> None:
    assert DASHBOARD.exists(), "the dashboard has not been built: make frontend"
    for asset in sorted((DASHBOARD.parent / "assets").iterdir()):
        answer = client.get(f"/static/dashboard/assets/{asset.name}")
        assert answer.status_code == 200
        assert "immutable" in answer.headers["cache-control"], asset.name


def test_health_and_readiness(client: httpx.Client) -> None:
    assert client.get("/healthz").json() == {"status": "ok"}
    assert client.get("/readyz").json() == {"status": "ok", "checks": {"database": True, "engine": True}}


def test_the_partition_table_comes_from_telemetry(stack: Stack) -> None:
    topic = stack.create_topic(stack.demo, "told-by-telemetry", partitions=2)
    with stack.http(stack.demo) as client:
        wait_until(lambda: client.get(f"/topics/{topic}/partitions").json()["source"] == "telemetry", 15)
        client.post(f"/topics/{topic}/records", json=[{"value": "x", "partition": 1}])
        wait_until(lambda: client.get(f"/topics/{topic}").json()["record_count"] == "1", 15)


def test_unknown_api_paths_are_problem_documents(client: httpx.Client) -> None:
    answer = client.get("/api/v1/nope")
    assert answer.status_code == 404
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.json()["status"] == 404


def test_foreign_hosts_are_refused(client: httpx.Client) -> None:
    assert client.get("/healthz", headers={"Host": "evil.example"}).status_code == 400


def test_no_middleware_takes_async_views_off_their_loop() -> None:
    for path in settings.MIDDLEWARE:
        assert getattr(import_string(path), "async_capable", False), f"{path} would run the data plane in a thread"
