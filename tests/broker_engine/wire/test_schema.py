"""The schema language: defaults, versions, null, tags, what may be dropped and what may not."""

from __future__ import annotations

import traceback
from dataclasses import dataclass

import pytest

from broker_engine.wire.errors import WireError
from broker_engine.wire.kinds import Array, Int8, Int32, Records, String
from broker_engine.wire.messages.fetch import FetchResponse, PartitionData
from broker_engine.wire.messages.metadata import MetadataRequest, MetadataResponse
from broker_engine.wire.schema import Struct, default_of, field


class Inner(Struct):
    number: Int8 = -1
    label: String = field("1+", default="", ignorable=True)


class Outer(Struct, versions="0-3", flexible="2+"):
    inner: Inner | None = None
    numbers: Array[Int32] = ()
    strict: Int8 = field("1+", default=7)
    note: String | None = field("2+", default=None, tag=3, ignorable=True)
    spare: Inner = field("2+", default=default_of(Inner), tag=0)


class Old(Struct):
    name: String = ""


class New(Struct):
    name: String = ""
    colour: String = field(default="red", tag=0)


class Held(Struct):
    before: Int8 = 1
    records: Records | None = None


@dataclass
class OnDisk:
    size_bytes: int


def test_fields_have_their_defaults() -> None:
    outer = Outer()
    assert (outer.inner, list(outer.numbers), outer.strict, outer.note) == (None, [], 7, None)


def test_a_nullable_struct_has_one_byte_in_front() -> None:
    assert Outer().encode(0) == b"\xff" + b"\0\0\0\0"
    assert Outer(inner=Inner(number=5)).encode(0) == b"\1\5" + b"\0\0\0\0"
    assert Outer.decode(b"\1\5\0\0\0\0", 0).inner == Inner(number=5)


def test_tagged_fields_are_written_in_ascending_order_and_left_out_at_their_default() -> None:
    assert Outer().encode(2) == b"\xff\1\7\0"
    both = Outer(note="hi", spare=Inner(number=1))
    assert both.encode(2) == b"\xff\1\7\2" + b"\0\3\1\1\0" + b"\3\3\3hi"
    assert Outer.decode(both.encode(2), 2) == both


def test_a_field_that_a_version_lacks_is_dropped_only_if_that_is_allowed() -> None:
    assert Outer(inner=Inner(label="lost")).encode(0) == Outer(inner=Inner()).encode(0)
    assert Outer(note="lost").encode(1) == Outer().encode(1)
    with pytest.raises(WireError, match=r"Outer\.strict: set, but version 0"):
        Outer(strict=8).encode(0)
    with pytest.raises(WireError, match=r"Outer\.spare"):
        Outer(spare=Inner(number=3)).encode(1)


def test_an_older_reader_skips_what_a_newer_writer_adds() -> None:
    assert Old.decode(New(name="x", colour="blue").encode(0), 0) == Old(name="x")
    assert New.decode(Old(name="x").encode(0), 0) == New(name="x", colour="red")


def test_values_that_do_not_fit_are_refused_when_written() -> None:
    for message in (Outer(inner=Inner(number=128)), Outer(numbers=[2**31]), Outer(inner=Inner(label="x" * 40_000))):
        with pytest.raises(WireError):
            message.encode(1)
    with pytest.raises(WireError):
        Old(name="\ud800").encode(0)


@pytest.mark.parametrize("count", [0, 8, 9, 126, 127, 128, 20_000])
@pytest.mark.parametrize("version", [1, 2])
def test_arrays_of_every_length_come_back(count: int, version: int) -> None:
    outer = Outer(numbers=list(range(count)))
    assert Outer.decode(outer.encode(version), version) == outer


def test_a_shared_default_refuses_assignment() -> None:
    partition = PartitionData()
    with pytest.raises(AttributeError, match="shared default"):
        partition.current_leader.leader_id = 3
    assert partition == FetchResponse.decode(_one_partition(), 12).responses[0].partitions[0]


def _one_partition() -> bytes:
    from broker_engine.wire.messages.fetch import FetchableTopicResponse

    topic = FetchableTopicResponse(topic="t", partitions=[PartitionData()])
    return FetchResponse(responses=[topic]).encode(12)


def test_records_travel_as_parts() -> None:
    big, part = bytes(5000), memoryview(bytes(3000))
    assert Held(records=big).encode_parts(0) == [b"\1" + b"\x89\x27", big, b"\0"]
    on_disk = OnDisk(size_bytes=100)
    head, *rest = Held(records=[on_disk, part]).encode_parts(0)  # type: ignore[arg-type]
    assert (head, rest) == (b"\1" + b"\x9d\x18", [on_disk, part, b"\0"])


def test_small_records_are_copied_into_the_buffer() -> None:
    assert Held(records=b"abc").encode_parts(0) == [b"\1\4abc\0"]
    assert Held(records=b"").encode_parts(0) == [b"\1\1\0"]
    assert Held(records=None).encode_parts(0) == [b"\1\0\0"]


def test_records_on_disk_cannot_be_joined() -> None:
    with pytest.raises(WireError, match="encode_parts"):
        Held(records=OnDisk(size_bytes=9)).encode(0)  # type: ignore[arg-type]


def test_a_field_without_a_default_is_refused_when_declared() -> None:
    with pytest.raises(TypeError, match="needs a default"):
        type(Struct)("Bare", (Struct,), {"__annotations__": {"name": String}})


def test_messages_compare_by_content_and_show_it() -> None:
    assert MetadataRequest(topics=[]) == MetadataRequest(topics=())
    assert MetadataRequest(topics=None) != MetadataRequest(topics=())
    assert MetadataRequest() != MetadataResponse()
    assert repr(Inner(number=2)) == "Inner(number=2, label='')"


def test_a_traceback_shows_the_generated_line() -> None:
    try:
        Outer(numbers=3).encode(0)  # type: ignore[arg-type]
    except TypeError as error:
        text = "".join(traceback.format_exception(error))
    assert "<wire Outer v0 writer>" in text
    assert "= len(items" in text
