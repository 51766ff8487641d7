"""What a real Kafka received and sent is read and written back to the same bytes."""

from __future__ import annotations

from collections import Counter

import pytest

from broker_engine.wire import registry
from broker_engine.wire.framing import encode_request, encode_response, parse_request_header, parse_response
from tests.broker_engine.wire.golden_frames import Pair, all_pairs, implemented_pairs


def joined(parts: list[object]) -> bytes:
    return b"".join(part for part in parts if isinstance(part, bytes | memoryview))


@pytest.mark.parametrize("pair", implemented_pairs(), ids=str)
def test_frames_come_back_as_they_were(pair: Pair) -> None:
    spec = registry.api(pair.key)
    header = parse_request_header(memoryview(pair.request))
    request = spec.request.decode(header.body, pair.version)
    assert joined([*encode_request(header.correlation_id, header.client_id, request, pair.version)]) == pair.request
    correlation_id, response = parse_response(pair.response, spec, pair.version)
    assert correlation_id == header.correlation_id
    assert joined([*encode_response(correlation_id, response, pair.version)]) == pair.response


def test_the_number_of_frames_left_out_is_known() -> None:
    """Lower LEFT_OUT when an API is added; the rest are APIs of later issues or outside the ranges we offer."""
    left_out = Counter(pair.api for pair in all_pairs() if not pair.is_implemented)
    print(f"golden pairs left out: {left_out.total()} of {len(all_pairs())}, of {len(left_out)} APIs: {dict(left_out)}")
    assert (len(all_pairs()), len(implemented_pairs()), left_out.total(), len(left_out)) == (986, 847, 139, 27)


def test_no_version_that_is_offered_is_left_out() -> None:
    seen = {(pair.key, pair.version) for pair in implemented_pairs()}
    offered = {
        (spec.key, version)
        for spec in registry.all_apis()
        if not spec.is_internal and not spec.is_between_brokers
        for version in range(spec.min_version, spec.max_version + 1)
    }
    assert offered - seen == set()
