"""Bytes from a stranger: a WireError or a clean value, within a bounded memory, whatever they say."""

from __future__ import annotations

import struct
import tracemalloc
from collections.abc import Callable

import pytest

from broker_engine.wire import registry
from broker_engine.wire.errors import WireError
from broker_engine.wire.framing import parse_request_header, parse_response
from broker_engine.wire.kinds import StructOf
from broker_engine.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from broker_engine.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from broker_engine.wire.messages.offset_commit import OffsetCommitRequest
from broker_engine.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from broker_engine.wire.sizes import memory_bytes
from tests.broker_engine.wire.golden_frames import Pair, Special, one_pair_per_version, special_cases

MIB = 1 << 20


def uvarint(value: int) -> bytes:
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes([*out, value])


def peak_bytes(call: Callable[[], object]) -> int:
    tracemalloc.start()
    try:
        call()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def outcome(call: Callable[[], object]) -> str:
    try:
        call()
    except WireError:
        return "refused"
    return "read"


@pytest.mark.parametrize("pair", one_pair_per_version(), ids=str)
def test_a_frame_cut_anywhere_is_refused_or_read(pair: Pair) -> None:
    spec = registry.api(pair.key)

    def read_request(frame: bytes) -> None:
        spec.request.decode(parse_request_header(memoryview(frame)).body, pair.version)

    cuts = [outcome(lambda end=end: read_request(pair.request[:end])) for end in range(len(pair.request))]  # type: ignore[misc]
    assert set(cuts) == {"refused"}, "every field is needed, so no shorter frame is a request"
    for end in range(len(pair.response)):
        assert outcome(lambda end=end: parse_response(pair.response[:end], spec, pair.version)) == "refused"  # type: ignore[misc]


@pytest.mark.parametrize("count", [2**31 - 1, 2**20, 3])
def test_an_array_longer_than_its_frame_allocates_nothing(count: int) -> None:
    body = struct.pack(">i", count) + b"\0\0"

    def read() -> None:
        with pytest.raises(WireError, match="does not fit"):
            MetadataRequest.decode(body, 1)

    MetadataRequest.decode(b"\0\0\0\0", 1)  # the compiler's own memory is not the question
    assert peak_bytes(read) < 64 << 10


def test_a_compact_array_longer_than_its_frame_is_refused() -> None:
    with pytest.raises(WireError, match="does not fit"):
        MetadataRequest.decode(uvarint(2**31 - 1) + bytes(10), 12)


@pytest.mark.parametrize("count", [-1, -2, -(2**31)])
def test_an_array_length_below_zero_is_null(count: int) -> None:
    assert MetadataRequest.decode(struct.pack(">i", count), 1).topics is None


def test_null_for_a_field_that_cannot_be_null_is_refused() -> None:
    with pytest.raises(WireError, match="topics: null"):
        MetadataRequest.decode(struct.pack(">i", -1), 0)
    with pytest.raises(WireError, match="name: null"):
        MetadataRequest.decode(struct.pack(">ih", 1, -1), 1)


def test_bad_utf_8_becomes_the_replacement_character() -> None:
    (topic,) = MetadataRequest.decode(struct.pack(">ih3s", 1, 3, b"a\xffb"), 1).topics or ()
    assert topic.name == "a\ufffdb"


def test_a_compact_string_beyond_kafkas_limit_is_refused() -> None:
    body = b"\2" + uvarint(40_001) + bytes(40_000) + b"\0\0\0\0"
    with pytest.raises(WireError, match="length 40000"):
        MetadataRequest.decode(body, 9)


@pytest.mark.parametrize("length", [6, 11])
def test_a_varint_of_more_than_five_bytes_is_refused(length: int) -> None:
    with pytest.raises(WireError, match="varint"):
        MetadataRequest.decode(b"\xff" * (length - 1) + b"\1" + bytes(64), 12)


def test_a_million_unknown_tags_are_skipped() -> None:
    body = MetadataRequest(topics=None).encode(12)[:-1] + uvarint(10**6) + b"\x63\0" * 10**6
    assert MetadataRequest.decode(body, 12) == MetadataRequest(topics=None)
    assert peak_bytes(lambda: MetadataRequest.decode(body, 12)) < 64 << 10


def test_tags_without_end_are_refused() -> None:
    body = MetadataRequest(topics=None).encode(12)[:-1]
    with pytest.raises(WireError, match="memory budget"):
        MetadataRequest.decode(body + uvarint(3 * 10**6) + b"\x63\0" * 3 * 10**6, 12)
    with pytest.raises(WireError, match="does not fit"):
        MetadataRequest.decode(body + uvarint(10**6) + b"\x63\0", 12)


def test_a_tagged_field_that_lies_about_its_size_is_refused() -> None:
    body = FetchRequest().encode(12)[:-1]
    short_size = body + uvarint(1) + b"\0" + uvarint(2) + uvarint(9) + b"clusters"
    with pytest.raises(WireError, match="cluster_id"):
        FetchRequest.decode(short_size, 12)
    with pytest.raises(WireError, match="does not fit"):
        FetchRequest.decode(body + uvarint(1) + b"\0" + uvarint(200) + b"\2a", 12)


def test_known_tags_may_repeat_and_stand_in_any_order() -> None:
    body = FetchRequest().encode(15)[:-1]
    replica_state = b"\1\x0d" + struct.pack(">iq", 7, 9) + b"\0"
    unknown = b"\x2a\1!"
    message = FetchRequest.decode(body + uvarint(4) + unknown + replica_state + replica_state + b"\0\2\2a", 15)
    assert (message.replica_state.replica_id, message.cluster_id) == (7, "a")


def many_topics(count: int) -> bytes:
    return MetadataRequest(topics=[MetadataRequestTopic(name=f"{i:04}") for i in range(count)]).encode(12)


def test_the_memory_budget_bounds_what_one_message_costs() -> None:
    body = many_topics(9999)
    MetadataRequest.decode(body, 12)

    def read() -> None:
        with pytest.raises(WireError, match="memory budget"):
            MetadataRequest.decode(body, 12, memory_bytes_max=MIB)

    assert peak_bytes(read) < MIB


@pytest.mark.parametrize("version", [9, 12])
def test_the_estimate_of_an_elements_cost_is_an_upper_bound(version: int) -> None:
    partitions = [PartitionProduceData(index=1000 + i, records=b"x" * 8) for i in range(1000)]
    topics = [TopicProduceData(name=f"{i}", partition_data=partitions) for i in range(20)]
    produce = ProduceRequest(topic_data=topics).encode(version)
    estimate = 20 * memory_bytes(StructOf(TopicProduceData)) + 20_000 * memory_bytes(StructOf(PartitionProduceData))
    assert peak_bytes(lambda: ProduceRequest.decode(produce, version)) < estimate

    wanted = [FetchPartition(partition=1000 + i, fetch_offset=2**40 + i) for i in range(1000)]
    fetch = FetchRequest(topics=[FetchTopic(topic=f"{i}", partitions=wanted) for i in range(20)]).encode(version)
    estimate = 20 * memory_bytes(StructOf(FetchTopic)) + 20_000 * memory_bytes(StructOf(FetchPartition))
    assert peak_bytes(lambda: FetchRequest.decode(fetch, version)) < estimate


def test_records_are_views_into_the_frame() -> None:
    records = bytes(8 * MIB)
    partition = PartitionProduceData(records=records)
    body = ProduceRequest(topic_data=[TopicProduceData(name="t", partition_data=[partition])]).encode(9)
    ProduceRequest.decode(body, 9)
    assert peak_bytes(lambda: ProduceRequest.decode(body, 9)) < 16 << 10


def test_bytes_after_the_body_are_ignored() -> None:
    message = OffsetCommitRequest(group_id="g")
    assert OffsetCommitRequest.decode(message.encode(8) + b"left over", 8) == message


def test_a_version_that_was_never_declared_is_refused() -> None:
    for version in (-1, 14, 99):
        with pytest.raises(WireError, match="no version"):
            MetadataRequest.decode(b"", version)


def readable(special: Special) -> bool:
    """Framed input to an API and version that we have; the rest is decided above the codec."""
    if not special.is_framed or any(len(request) < 4 for request in special.requests):
        return False
    key, version = struct.unpack_from(">hh", special.requests[0])
    spec = registry.find(key)
    return spec is not None and not spec.is_between_brokers and version in spec.request.__wire_versions__


MALFORMED = ("truncated", "array length huge", "array length 2^31-1", "header only", "frame length 4")
READABLE = [special for special in special_cases() if readable(special)]


@pytest.mark.parametrize("special", READABLE, ids=lambda special: special.name)
def test_odd_frames_are_read_where_kafka_reads_them(special: Special) -> None:
    def read() -> None:
        for frame in special.requests:
            header = parse_request_header(memoryview(frame))
            registry.api(header.api_key).request.decode(header.body, header.api_version)

    is_malformed = any(word in special.name for word in MALFORMED)
    assert outcome(read) == ("refused" if is_malformed else "read")
    if is_malformed:
        assert special.outcome == ("closed",)


def test_the_number_of_odd_frames_read_is_known() -> None:
    assert (len(special_cases()), len(READABLE)) == (50, 28)
