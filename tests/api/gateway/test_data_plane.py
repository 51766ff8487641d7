"""Produce and fetch over HTTP against a real broker."""

from __future__ import annotations

import json
import socket
import threading
import time
import uuid
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from tests.web.stack import Stack, wait_until


@pytest.fixture
def client(stack: Stack) -> Iterator[httpx.Client]:
    with stack.http(stack.demo) as client:
        yield client


@pytest.fixture
def topic(stack: Stack) -> str:
    return stack.create_topic(stack.demo, f"t-{uuid.uuid4().hex[:8]}")


def send(client: httpx.Client, topic: str, body: Any, **options: Any) -> httpx.Response:
    return client.post(f"/topics/{topic}/records", json=body, **options)


def read(client: httpx.Client, topic: str, partition: int = 0, **query: Any) -> dict[str, Any]:
    answer = client.get(f"/topics/{topic}/partitions/{partition}/records", params=query)
    assert answer.status_code == 200, answer.text
    told: dict[str, Any] = answer.json()
    return told


def values(fetched: dict[str, Any]) -> list[str]:
    return [record["value"].get("data") or record["value"]["text"] for record in fetched["records"]]


def test_what_was_sent_comes_back_byte_for_byte(client: httpx.Client, topic: str) -> None:
    text = '{"id": 9007199254740993, "price": 1.10}'
    header = {"name": "src", "value": "d2Vi"}
    record = {"key": "o-17", "value": 0, "headers": [header], "timestamp": 1767607199000}
    body = json.dumps([record]).replace('"value": 0', f'"value": {text}')
    answer = client.post(f"/topics/{topic}/records", content=body, headers={"Content-Type": "application/json"})
    assert answer.status_code == 200, answer.text
    assert answer.json() == {"results": [{"partition": 0, "offset": "0", "timestamp": 1767607199000}]}
    fetched = read(client, topic)
    assert fetched == {
        "records": [
            {
                "partition": 0,
                "offset": "0",
                "timestamp": 1767607199000,
                "key": {"type": "string", "data": "o-17"},
                "value": {"type": "json", "text": text},
                "headers": [header],
            }
        ],
        "next_offset": "1",
        "high_watermark": "1",
        "last_stable_offset": "1",
        "log_start_offset": "0",
    }


def test_a_thousand_records_keep_their_order(client: httpx.Client, topic: str) -> None:
    answer = send(client, topic, {"records": [{"value": f"v{n}"} for n in range(1000)], "acks": "leader"})
    assert [result["offset"] for result in answer.json()["results"]] == [str(n) for n in range(1000)]
    fetched = read(client, topic, max_records=1000)
    assert values(fetched) == [f"v{n}" for n in range(1000)]


def test_ndjson(client: httpx.Client, topic: str) -> None:
    lines = b"".join(b'{"value": %d}\n' % n for n in range(3))
    answer = client.post(f"/topics/{topic}/records", content=lines, headers={"Content-Type": "application/x-ndjson"})
    assert answer.status_code == 200, answer.text
    assert values(read(client, topic, value_format="json")) == ["0", "1", "2"]


def test_acks_none_is_accepted_without_offsets(client: httpx.Client, topic: str) -> None:
    answer = send(client, topic, [{"value": "x"}], params={"acks": "none"})
    assert answer.status_code == 202
    assert answer.json()["results"][0]["offset"] is None
    assert values(read(client, topic, wait_ms=5000)) == ["x"]


def test_a_bad_partition_fails_alone(client: httpx.Client, topic: str) -> None:
    answer = send(client, topic, [{"value": "in"}, {"value": "out", "partition": 7}])
    assert answer.status_code == 207
    first, second = answer.json()["results"]
    assert first["offset"] == "0"
    assert second["error_code"] == 40401


def test_a_record_over_the_topics_limit_is_413_with_its_result(stack: Stack, client: httpx.Client) -> None:
    small = stack.create_topic(stack.demo, f"small-{uuid.uuid4().hex[:8]}", **{"max.message.bytes": "1000"})
    answer = send(client, small, [{"value": "x" * 5000}])
    assert answer.status_code == 413
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.json()["results"][0]["error_code"] == 41301


@pytest.mark.parametrize(
    ("body", "status", "field"),
    [
        ([{"valeu": 1}], 400, "[0].valeu"),
        ({"records": [{"partition": "0"}]}, 400, "records[0].partition"),
        ([{}] * 1001, 413, None),
    ],
)
def test_bad_bodies_name_the_field(client: httpx.Client, topic: str, body: Any, status: int, field: str | None) -> None:
    answer = send(client, topic, body)
    assert answer.status_code == status
    if field is not None:
        assert answer.json()["errors"][0]["field"] == field
    assert read(client, topic)["high_watermark"] == "0"


def test_a_body_over_five_mebibytes_is_413(client: httpx.Client, topic: str) -> None:
    assert send(client, topic, [{"value": "x" * (5 << 20)}]).status_code == 413


def test_other_media_types_are_415(client: httpx.Client, topic: str) -> None:
    answer = client.post(f"/topics/{topic}/records", content=b"a=b", headers={"Content-Type": "text/csv"})
    assert answer.status_code == 415


def test_tenants_with_the_same_topic_name_see_only_their_own(stack: Stack, client: httpx.Client, topic: str) -> None:
    with stack.http(stack.other) as other:
        assert other.get(f"/topics/{topic}/partitions/0/records").status_code == 404
        assert send(other, topic, [{"value": "spy"}]).status_code == 404
        stack.create_topic(stack.other, topic)
        send(other, topic, [{"value": "theirs"}])
        send(client, topic, [{"value": "mine"}])
        assert values(read(other, topic)) == ["theirs"]
    assert values(read(client, topic)) == ["mine"]


@pytest.mark.parametrize("name", ["absent", "%2e%2e", "demo%2Fabsent", "__telemetry", "x" * 300])
def test_unknown_topics_are_404_and_are_not_made(client: httpx.Client, name: str) -> None:
    assert client.get(f"/topics/{name}/partitions/0/records").status_code == 404
    assert send(client, name, [{"value": "x"}]).status_code in (403, 404)
    assert client.get(f"/topics/{name}").status_code == 404


def test_an_unknown_partition_is_404(client: httpx.Client, topic: str) -> None:
    assert client.get(f"/topics/{topic}/partitions/9/records").status_code == 404


def test_an_offset_out_of_range_is_416_with_the_valid_range(client: httpx.Client, topic: str) -> None:
    send(client, topic, [{"value": "x"}] * 3)
    answer = client.get(f"/topics/{topic}/partitions/0/records", params={"offset": 17})
    assert answer.status_code == 416
    assert (answer.json()["log_start_offset"], answer.json()["high_watermark"]) == ("0", "3")


def test_starts(client: httpx.Client, topic: str) -> None:
    send(client, topic, [{"value": f"v{n}", "timestamp": 1_700_000_000_000 + n} for n in range(5)])
    assert values(read(client, topic, tail=2)) == ["v3", "v4"]
    assert values(read(client, topic, tail=99)) == [f"v{n}" for n in range(5)]
    assert values(read(client, topic, timestamp=1_700_000_000_003)) == ["v3", "v4"]
    assert values(read(client, topic, timestamp=1_800_000_000_000)) == []
    assert values(read(client, topic, offset=4)) == ["v4"]
    assert values(read(client, topic, offset="latest")) == []


def test_limits_of_one_answer_and_where_to_go_on(client: httpx.Client, topic: str) -> None:
    send(client, topic, [{"value": "x" * 100} for _ in range(10)])
    fetched = read(client, topic, max_records=4)
    assert (len(fetched["records"]), fetched["next_offset"]) == (4, "4")
    fetched = read(client, topic, offset=4, max_bytes=250)
    assert (len(fetched["records"]), fetched["next_offset"]) == (2, "6")


def test_a_long_poll_returns_as_soon_as_a_record_comes(stack: Stack, client: httpx.Client, topic: str) -> None:
    def send_soon() -> None:
        with stack.http(stack.demo) as sender:
            send(sender, topic, [{"value": "awaited"}])

    read(client, topic)  # the connection is there, so that the time below is the poll's own
    threading.Timer(0.5, send_soon).start()
    started_s = time.monotonic()
    fetched = read(client, topic, wait_ms=20_000)
    assert values(fetched) == ["awaited"]
    assert time.monotonic() - started_s < 10


def test_a_long_poll_ends_empty_after_its_time(client: httpx.Client, topic: str) -> None:
    started_s = time.monotonic()
    assert read(client, topic, wait_ms=300)["records"] == []
    assert 0.25 < time.monotonic() - started_s < 5


def test_a_long_poll_ends_when_its_caller_goes_away(stack: Stack, topic: str) -> None:
    before = stack.engine_connection_count()
    with stack.http() as viewer:  # a caller of its own: the first one opens a shared connection and one for the poll
        sign_in(viewer, "viewer@other.example")
        poll = viewer.build_request("GET", f"/topics/{stack.create_topic(stack.other, topic)}/partitions/0/records")
        cookies = poll.headers["cookie"]
    request = f"GET {poll.url.path}?offset=0&wait_ms=30000 HTTP/1.1\r\nHost: localhost\r\nCookie: {cookies}\r\n\r\n"
    with socket.create_connection(("127.0.0.1", stack.port)) as browser:
        browser.sendall(request.encode())
        wait_until(lambda: stack.engine_connection_count() >= before + 2, 10)
        polling = stack.engine_connection_count()
    wait_until(lambda: stack.engine_connection_count() < polling, 10)


def test_nobody_gets_in_without_signing_in(stack: Stack, topic: str) -> None:
    with stack.http() as nobody:
        answer = nobody.get(f"/topics/{topic}/partitions/0/records")
    assert answer.status_code == 401
    assert answer.json()["error_code"] == 40101


def test_a_viewer_reads_but_does_not_write(stack: Stack, topic: str) -> None:
    with stack.http() as viewer:
        sign_in(viewer, "viewer@demo.example")
        assert viewer.get(f"/topics/{topic}/partitions/0/records").status_code == 200
        assert send(viewer, topic, [{"value": "x"}], headers=csrf(viewer)).status_code == 403


def test_a_session_needs_the_csrf_token_to_write(stack: Stack, topic: str) -> None:
    with stack.http() as owner:
        sign_in(owner, "owner@demo.example")
        assert send(owner, topic, [{"value": "x"}]).status_code == 403
        assert send(owner, topic, [{"value": "x"}], headers=csrf(owner)).status_code == 200


def sign_in(client: httpx.Client, email: str) -> None:
    client.get("/session")
    answer = client.post("/session", json={"email": email, "password": "correct horse battery"}, headers=csrf(client))
    assert answer.status_code == 200, answer.text


def csrf(client: httpx.Client) -> dict[str, str]:
    return {"X-CSRFToken": client.cookies["csrftoken"]}
