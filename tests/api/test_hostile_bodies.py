"""Bodies that somebody meant badly: each gets a 4xx problem, none an internal error."""

from __future__ import annotations

import json

import pytest

from tests.api.rest import Rest, problem

WRITABLE = {"/topics": "name", "/projects": "name", "/api-keys": "name", "/members": "email"}
HOSTILE = {
    "not JSON": b"{",
    "empty": b"",
    "not UTF-8": b'{"name": "\xff"}',
    "deep": b"[" * 100_000 + b"]" * 100_000,
    "deep object": b'{"name":' * 50_000 + b"1" + b"}" * 50_000,
    "not a number": b'{"name": NaN}',
    "endless number": b'{"name": ' + b"9" * 10_000 + b"}",
    "large": b'{"name": "' + b"x" * 3_000_000 + b'"}',
}


@pytest.mark.parametrize("kind", HOSTILE)
@pytest.mark.parametrize("path", WRITABLE)
def test_a_body_that_cannot_be_read_is_the_callers_mistake(owner: Rest, path: str, kind: str) -> None:
    answer = owner.post(path, HOSTILE[kind])
    assert answer.status_code in (400, 413), answer.content
    problem(answer, answer.status_code)


@pytest.mark.parametrize("text", ["\ud800", "a\0b", "a\udfffb"])
@pytest.mark.parametrize(("path", "field"), WRITABLE.items())
def test_text_that_no_database_takes_is_refused_by_field(owner: Rest, path: str, field: str, text: str) -> None:
    body = {field: text, **({"role": "viewer"} if path == "/members" else {})}
    answer = problem(owner.post(path, json.dumps(body).encode()), 400)
    assert [error["field"] for error in answer["errors"]] == [field]


@pytest.mark.parametrize(
    "configs", [{"retention.ms": "\ud800"}, {"\ud800": "1"}, {"retention.ms": "1\0"}, {"a\0": "1"}]
)
def test_configs_that_no_database_takes_are_refused(owner: Rest, configs: dict[str, str]) -> None:
    problem(owner.post("/topics", json.dumps({"name": "orders", "configs": configs}).encode()), 400)


def test_another_media_type_is_415(owner: Rest) -> None:
    answer = owner.client.post("/api/v1/topics", b"name=orders", content_type="text/plain", headers=owner.headers)
    problem(answer, 415)


def test_an_unknown_method_is_405(owner: Rest) -> None:
    problem(owner.call("PUT", "/topics", {}), 405)
