"""When the broker is away: prompt and honest answers, and everything goes on when it is back."""

from __future__ import annotations

import time
import uuid

from tests.web.stack import Stack, wait_until


def test_requests_answer_503_while_the_broker_is_away_and_work_again_after(stack: Stack) -> None:
    topic = stack.create_topic(stack.demo, f"away-{uuid.uuid4().hex[:8]}")
    with stack.http(stack.demo) as client:
        records, partition = f"/topics/{topic}/records", f"/topics/{topic}/partitions/0/records"
        assert client.post(records, json=[{"value": "before"}]).status_code == 200
        stack.broker.stop()
        try:
            for answer in (client.get(partition), client.post(records, json=[{"value": "meanwhile"}])):
                assert answer.status_code == 503, answer.text
                assert answer.headers["retry-after"]
                assert answer.headers["content-type"] == "application/problem+json"
        finally:
            stack.broker.start()
        wait_until(lambda: client.post(records, json=[{"value": "after"}]).status_code == 200, 20)
        found = client.get(partition).json()["records"]
    told = [record["value"]["data"] for record in found]
    assert told[0] == "before"
    assert "after" in told


def test_a_503_comes_within_the_limits_of_patience(stack: Stack) -> None:
    stack.broker.stop()
    try:
        with stack.http(stack.other) as client:
            started_s = time.monotonic()
            assert client.get("/topics/any/partitions/0/records").status_code == 503
            assert time.monotonic() - started_s < 30
    finally:
        stack.broker.start()
