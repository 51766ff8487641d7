"""Golden frames with bytes changed, cut, doubled: read or refused, and what was read can be written and read again."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from broker_engine.wire import registry
from broker_engine.wire.errors import WireError
from broker_engine.wire.framing import parse_request_header, parse_response
from broker_engine.wire.schema import Message
from tests.broker_engine.wire.golden_frames import Pair, one_pair_per_version

PAIRS = one_pair_per_version()
TRUSTED_HEAD_BYTES = 4  # the API key and version stay, so that the mutation lands in a body that is read
INTERESTING = [b"\0", b"\x7f", b"\x80", b"\xff", b"\xff" * 4, b"\x7f\xff\xff\xff", b"\x80\0\0\0", b"\xff" * 5]

QUICK = settings(max_examples=600, deadline=None, suppress_health_check=list(HealthCheck))


@st.composite
def mutations(draw: st.DrawFn, frame: bytes) -> bytes:
    out = bytearray(frame)
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(TRUSTED_HEAD_BYTES, max(TRUSTED_HEAD_BYTES, len(out))))
        removed = draw(st.integers(0, 5))
        out[at : at + removed] = draw(st.sampled_from(INTERESTING) | st.binary(max_size=6))
    return bytes(out)


def read_again(message: Message, version: int) -> None:
    assert type(message).decode(message.encode(version), version) == message


def check_request(pair: Pair, frame: bytes) -> None:
    spec = registry.api(pair.key)
    try:
        message = spec.request.decode(parse_request_header(memoryview(frame)).body, pair.version)
    except WireError:
        return
    read_again(message, pair.version)


def check_response(pair: Pair, frame: bytes) -> None:
    try:
        _, message = parse_response(frame, registry.api(pair.key), pair.version)
    except WireError:
        return
    read_again(message, pair.version)


@QUICK
@given(data=st.data(), pair=st.sampled_from(PAIRS))
def test_changed_requests_are_read_or_refused(data: st.DataObject, pair: Pair) -> None:
    check_request(pair, data.draw(mutations(pair.request)))


@QUICK
@given(data=st.data(), pair=st.sampled_from(PAIRS))
def test_changed_responses_are_read_or_refused(data: st.DataObject, pair: Pair) -> None:
    check_response(pair, data.draw(mutations(pair.response)))


@pytest.mark.slow
@pytest.mark.parametrize("pair", PAIRS, ids=str)
@settings(QUICK, max_examples=100)
@given(data=st.data())
def test_changed_frames_of_every_version_are_read_or_refused(pair: Pair, data: st.DataObject) -> None:
    check_request(pair, data.draw(mutations(pair.request)))
    check_response(pair, data.draw(mutations(pair.response)))
