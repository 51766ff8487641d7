"""One-record requests at a fixed rate on one connection, each timed: what another client feels of what a broker does.

A request that is late because the one before it was is sent at once and timed from when it was due.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from benchmarks.loads.frames import PRODUCE_VERSION, idempotent_frames
from benchmarks.loads.rpc import Connection, new_producer_id
from broker_engine.wire.framing import parse_response
from broker_engine.wire.messages.produce import ProduceRequest, ProduceResponse

RECORD_BYTES = 100


def produce(port: int, topic: str, *, requests_per_s: int, seconds: float) -> list[float]:
    """Milliseconds from when each request was due to its answer."""
    return _produce(port, topic, int(requests_per_s * seconds), requests_per_s, time.perf_counter)


def _produce(port: int, topic: str, count: int, requests_per_s: int, now_s: Callable[[], float]) -> list[float]:
    frames = idempotent_frames(topic, 0, count, RECORD_BYTES, new_producer_id(port))
    latencies_ms: list[float] = []
    with Connection(port) as connection:
        started_s = now_s()
        for number, frame in enumerate(frames):
            due_s = started_s + number / requests_per_s
            time.sleep(max(0.0, due_s - now_s()))
            connection.socket.sendall(frame)
            _check(connection.read_frame())
            latencies_ms.append((now_s() - due_s) * 1000)
    return latencies_ms


def _check(answer: memoryview) -> None:
    response = parse_response(answer, ProduceRequest.API, PRODUCE_VERSION)[1]
    assert isinstance(response, ProduceResponse)
    code = response.responses[0].partition_responses[0].error_code
    assert code == 0, f"produce answered {code}"
