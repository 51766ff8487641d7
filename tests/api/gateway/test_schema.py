"""The OpenAPI description is valid, lists the real paths, and real answers are what it says."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from django.urls import get_resolver
from jsonschema import Draft202012Validator
from openapi_spec_validator import validate

from tests.web.stack import Stack

PRODUCE = "/api/v1/topics/{topic}/records"
FETCH = "/api/v1/topics/{topic}/partitions/{partition}/records"


@pytest.fixture(scope="module")
def document(stack: Stack) -> dict[str, Any]:
    with stack.http(stack.demo) as client:
        answer = client.get("/schema")
    assert answer.status_code == 200, answer.text
    told: dict[str, Any] = answer.json()
    return told


@pytest.fixture(scope="module")
def client(stack: Stack) -> Iterator[httpx.Client]:
    with stack.http(stack.demo) as client:
        yield client


@pytest.fixture(scope="module")
def topic(stack: Stack) -> str:
    return stack.create_topic(stack.demo, f"schema-{uuid.uuid4().hex[:8]}")


def check_answer(document: dict[str, Any], path: str, method: str, answer: httpx.Response) -> None:
    described = document["paths"][path][method]["responses"]
    assert str(answer.status_code) in described, f"{answer.status_code} is not described: {answer.text}"
    media_type = answer.headers["content-type"].partition(";")[0]
    schema = described[str(answer.status_code)]["content"][media_type]["schema"]
    Draft202012Validator({**schema, "components": document["components"]}).validate(answer.json())


def test_the_document_is_valid_openapi_3_1(document: dict[str, Any]) -> None:
    assert document["openapi"].startswith("3.1")
    validate(document)


def test_every_described_path_of_the_data_plane_is_routed_and_every_route_described(document: dict[str, Any]) -> None:
    from api.gateway.schema import PATHS
    from api.gateway.urls import urlpatterns

    routed = {
        f"/api/v1/{pattern.pattern}".replace("<str:", "{").replace("<int:", "{").replace(">", "}")
        for pattern in urlpatterns
    }
    assert routed == set(PATHS)
    assert set(PATHS) <= set(document["paths"])
    assert get_resolver("web.urls").resolve("/api/v1/topics/x/records").func.__name__ == "produce"


@pytest.mark.parametrize(
    ("options", "status"),
    [
        ({"json": [{"key": "k", "value": {"a": 1}, "headers": [{"name": "n", "value": None}]}]}, 200),
        ({"json": {"records": [{"value": "x"}], "acks": "none"}}, 202),
        ({"json": [{"value": "x"}, {"partition": 99}]}, 207),
        ({"json": [{"nope": 1}]}, 400),
        ({"json": [{"value": "x"}], "auth": ("nobody", "nothing")}, 401),
        ({"json": [{}] * 1001}, 413),
        ({"content": b"x", "headers": {"Content-Type": "text/csv"}}, 415),
    ],
)
def test_produce_answers_as_described(
    document: dict[str, Any], client: httpx.Client, topic: str, options: dict[str, Any], status: int
) -> None:
    answer = client.post(f"/topics/{topic}/records", **options)
    assert answer.status_code == status
    check_answer(document, PRODUCE, "post", answer)


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("{topic}/partitions/0/records", 200),
        ("{topic}/partitions/0/records?offset=-1", 400),
        ("absent/partitions/0/records", 404),
        ("{topic}/partitions/0/records?offset=1000000000", 416),
    ],
)
def test_fetch_answers_as_described(
    document: dict[str, Any], client: httpx.Client, topic: str, path: str, status: int
) -> None:
    answer = client.get(f"/topics/{path.format(topic=topic)}")
    assert answer.status_code == status
    check_answer(document, FETCH, "get", answer)


def test_tickets_answer_as_described(document: dict[str, Any], client: httpx.Client) -> None:
    check_answer(document, "/api/v1/ws-tickets", "post", client.post("/ws-tickets"))


def test_our_own_request_examples_satisfy_the_described_body(document: dict[str, Any]) -> None:
    body = document["paths"][PRODUCE]["post"]["requestBody"]["content"]["application/json"]["schema"]
    validator = Draft202012Validator({**body, "components": document["components"]})
    validator.validate([{"key": "k", "value": {"type": "BINARY", "data": "AA=="}, "partition": 1, "timestamp": 5}])
    validator.validate({"records": [{"value": None}], "acks": "leader"})
    assert not validator.is_valid({"records": [{"valeu": 1}]})
    assert not validator.is_valid({"records": [], "acks": "some"})
