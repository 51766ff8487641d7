"""Large bodies are refused while they arrive."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

from web.asgi_types import Receive, Scope, Send
from web.body_limit import BodyLimit


class Reader:
    """An app that reads its whole body, as Django does."""

    def __init__(self) -> None:
        self.bytes_read = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                return
            self.bytes_read += len(message["body"])
            if not message.get("more_body"):
                break
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"ok"})


@pytest.fixture
def reader() -> Reader:
    return Reader()


@pytest.fixture
async def client(reader: Reader) -> AsyncIterator[httpx.AsyncClient]:
    transport = httpx.ASGITransport(app=BodyLimit(reader, bytes_max=1000))  # type: ignore[arg-type]
    async with httpx.AsyncClient(transport=transport, base_url="http://testserver") as client:
        yield client


async def chunks(count: int) -> AsyncIterator[bytes]:
    for _ in range(count):
        yield b"x" * 100


def check_refusal(response: httpx.Response) -> None:
    problem: dict[str, Any] = json.loads(response.content)
    assert (response.status_code, problem["status"]) == (413, 413)
    assert response.headers["content-type"] == "application/problem+json"


async def test_a_body_within_the_limit_passes(client: httpx.AsyncClient) -> None:
    assert (await client.post("/", content=b"x" * 1000)).text == "ok"
    assert (await client.post("/", content=chunks(10))).text == "ok"


async def test_a_declared_length_is_refused_before_anything_is_read(client: httpx.AsyncClient, reader: Reader) -> None:
    check_refusal(await client.post("/", content=b"x" * 1001))
    assert reader.bytes_read == 0


async def test_a_body_without_length_is_refused_when_it_grows_too_long(
    client: httpx.AsyncClient, reader: Reader
) -> None:
    check_refusal(await client.post("/", content=chunks(50)))
    assert reader.bytes_read == 1000
