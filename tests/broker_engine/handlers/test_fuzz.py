"""Real requests of real clients, as they are and mutated: each is answered in its own version or closed, and nothing
breaks.

The package's fixture fails at the end if the broker logged a single stack trace.
"""

from __future__ import annotations

import gzip
import json
import random
from collections import defaultdict
from pathlib import Path

import pytest

from broker_engine.handlers import CLIENT_APIS
from broker_engine.wire.framing import parse_response
from tests.broker_engine.broker_process import BrokerProcess
from tests.broker_engine.handlers.calls import describe
from tests.broker_engine.raw_client import RawClient

GOLDEN = Path(__file__).resolve().parents[2] / "golden" / "frames.jsonl.gz"
BY_KEY = {api.key: api for api in CLIENT_APIS}
SIGN_IN_KEYS = {17, 36}
MUTATIONS_PER_FRAME = 3
REPLY_TIMEOUT_S = 2.0


def _frames() -> dict[int, list[tuple[int, bytes]]]:
    """(version, request) by API key, of everything that this broker speaks."""
    frames: dict[int, list[tuple[int, bytes]]] = defaultdict(list)
    with gzip.open(GOLDEN, "rt") as lines:
        for line in lines:
            row = json.loads(line)
            api = BY_KEY.get(row["key"])
            if api is not None and api.has_version(row["version"]) and api.key not in SIGN_IN_KEYS:
                frames[api.key].append((row["version"], bytes.fromhex(row["request"])))
    return frames


FRAMES = _frames()


@pytest.mark.parametrize("key", sorted(FRAMES), ids=lambda key: BY_KEY[key].spec.name)
def test_recorded_requests_are_answered_in_their_own_version(broker: BrokerProcess, key: int) -> None:
    spec = BY_KEY[key].spec
    for version, request in FRAMES[key]:
        with RawClient(broker.address(), timeout_s=REPLY_TIMEOUT_S) as client:
            client.send_frame(request)
            try:
                frame = client.receive_frame()
            except TimeoutError:
                continue  # a long poll, or a produce that asked for no answer
            if frame is not None:
                correlation_id, _ = parse_response(frame, spec, version)
                assert correlation_id == int.from_bytes(request[4:8], "big", signed=True)


@pytest.mark.parametrize("key", sorted(FRAMES), ids=lambda key: BY_KEY[key].spec.name)
def test_mutated_requests_break_nothing(broker: BrokerProcess, key: int) -> None:
    source = random.Random(key)
    for _, request in FRAMES[key]:
        for _ in range(MUTATIONS_PER_FRAME):
            with RawClient(broker.address()) as client:
                client.send_frame(_mutated(request, source))
                client.send((-1).to_bytes(4, "big", signed=True))
    with RawClient(broker.address()) as client:
        assert describe(client, "nobody-made-this").error_code == 3


def _mutated(request: bytes, source: random.Random) -> bytes:
    """The API key and version stay, so that it is this handler that meets it."""
    data = bytearray(request)
    for _ in range(source.randint(1, 4)):
        position = source.randrange(4, len(data))
        match source.randrange(4):
            case 0:
                data[position] = source.choice((0, 1, 0x7F, 0x80, 0xFF))
            case 1:
                data[position] ^= 1 << source.randrange(8)
            case 2:
                del data[position : position + source.randint(1, 8)]
            case _:
                data[position:position] = source.randbytes(source.randint(1, 8))
        if len(data) <= 8:
            break
    return bytes(data)
