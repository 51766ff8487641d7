"""Headers and frames."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from broker_engine.wire import registry
from broker_engine.wire.errors import WireError
from broker_engine.wire.framing import (
    correlation_id_of,
    encode_request,
    encode_response,
    frame,
    parse_request_header,
    parse_response,
)
from broker_engine.wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from broker_engine.wire.messages.fetch import FetchableTopicResponse, FetchResponse, PartitionData
from broker_engine.wire.messages.metadata import MetadataRequest, MetadataResponse


@dataclass
class OnDisk:
    size_bytes: int


@pytest.mark.parametrize("client_id", [None, "", "kcat", "naïve"])
@pytest.mark.parametrize("version", [0, 8, 9, 13])
def test_a_request_comes_back_with_its_header(client_id: str | None, version: int) -> None:
    parts = encode_request(77, client_id, MetadataRequest(), version)
    header = parse_request_header(memoryview(b"".join(parts)))
    assert (header.api_key, header.api_version, header.correlation_id, header.client_id) == (3, version, 77, client_id)
    assert MetadataRequest.decode(header.body, version) == MetadataRequest()


@pytest.mark.parametrize("version", [0, 9])
def test_a_response_comes_back_with_its_correlation_id(version: int) -> None:
    (data,) = encode_response(-5, MetadataResponse(), version)
    assert isinstance(data, bytes)
    assert parse_response(data, registry.api(3), version) == (-5, MetadataResponse())
    assert correlation_id_of(data) == -5


@pytest.mark.parametrize("version", [0, 3, 4])
def test_an_api_versions_response_has_no_tags_in_its_header(version: int) -> None:
    response = ApiVersionsResponse(error_code=35)
    assert encode_response(7, response, version) == [b"\0\0\0\7" + response.encode(version)]


@pytest.mark.parametrize("version", [5, 99, -1])
def test_an_api_versions_request_of_an_unknown_version_is_read_with_the_newest_header(version: int) -> None:
    head = b"\0\x12" + version.to_bytes(2, "big", signed=True) + b"\0\0\0\1" + b"\0\1a"
    assert bytes(parse_request_header(memoryview(head + b"\0body")).body) == b"body"
    with pytest.raises(WireError):
        parse_request_header(memoryview(head))


def test_unknown_tags_in_headers_are_skipped() -> None:
    body = ApiVersionsRequest(client_software_name="a", client_software_version="1").encode(3)
    header = parse_request_header(memoryview(b"\0\x12\0\3\0\0\0\1\xff\xff" + b"\2\5\1!\5\2!!" + body))
    assert ApiVersionsRequest.decode(header.body, 3).client_software_name == "a"
    tagged = b"\0\0\0\1" + b"\1\x63\0" + MetadataResponse().encode(9)
    assert parse_response(tagged, registry.api(3), 9) == (1, MetadataResponse())


def test_an_unknown_key_is_read_with_header_v1() -> None:
    header = parse_request_header(memoryview(b"\x03\xe7\0\0\0\0\0\1\xff\xffrest"))
    assert (header.api_key, header.client_id, bytes(header.body)) == (999, None, b"rest")
    assert registry.find(999) is None


def test_a_header_cut_short_is_refused() -> None:
    whole = b"\0\3\0\x0c\0\0\0\1\0\1a\0"
    for end in range(len(whole)):
        with pytest.raises(WireError):
            parse_request_header(memoryview(whole[:end]))
    for end in range(4):
        with pytest.raises(WireError):
            parse_response(whole[:end], registry.api(3), 0)
        with pytest.raises(WireError):
            correlation_id_of(whole[:end])


def test_a_frame_begins_with_the_length_of_all_its_parts() -> None:
    on_disk = OnDisk(size_bytes=70_000)
    topic = FetchableTopicResponse(topic="t", partitions=[PartitionData(records=on_disk)])
    parts = encode_response(1, FetchResponse(responses=[topic]), 4)
    head, *rest = frame(parts)
    assert isinstance(head, bytes)
    assert int.from_bytes(head[:4], "big") == len(head) - 4 + 70_000
    assert rest == [on_disk]


def test_private_apis_are_marked() -> None:
    private = [(spec.key, spec.name) for spec in registry.all_apis() if spec.is_internal]
    assert private == [
        (10001, "AlterTenants"),
        (10002, "AlterCredentials"),
        (10003, "DescribeTenants"),
        (10004, "Identify"),
        (10005, "CreateOnFirstUse"),
        (10006, "ReplicaEnds"),
        (10007, "RecordTimes"),
        (10008, "ReplicaRead"),
    ]
    assert MetadataRequest.API is MetadataResponse.API is registry.api(3)
