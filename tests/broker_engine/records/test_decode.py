"""Decoding: what was built comes back, and no bytes at all make the decoder do anything but answer or refuse."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from broker_engine.records.batch import (
    Codec,
    CorruptBatch,
    Record,
    TooLarge,
    compute_crc,
    decode_records,
    iter_batches,
    pack_header,
    parse_header,
    verify_crc,
)
from broker_engine.records.builder import BatchBuilder, NewRecord, build_batch, restamp

CODECS = list(Codec)
MAX_BYTES = 1 << 20

timestamps = st.integers(min_value=-(1 << 62), max_value=(1 << 62) - 1)
optional_bytes = st.none() | st.binary(max_size=40)
headers = st.lists(st.tuples(st.text(max_size=8), optional_bytes), max_size=3).map(tuple)
new_records = st.builds(NewRecord, timestamps, optional_bytes, optional_bytes, headers)


@given(records=st.lists(new_records, min_size=1, max_size=8), codec=st.sampled_from(CODECS))
def test_what_was_built_comes_back(records: list[NewRecord], codec: Codec) -> None:
    batch = build_batch(records, codec=codec, base_offset=40)
    assert verify_crc(batch)
    assert decode_records(batch, max_bytes=MAX_BYTES) == [
        Record(40 + index, new.timestamp_ms, new.key, new.value, tuple(new.headers))
        for index, new in enumerate(records)
    ]


@settings(max_examples=300)
@given(data=st.data(), codec=st.sampled_from(CODECS))
def test_a_damaged_batch_is_decoded_or_refused_by_name(data: st.DataObject, codec: Codec) -> None:
    batch = bytearray(build_batch([NewRecord(5, b"key", b"value" * 20, (("h", b"1"),))] * 3, codec=codec))
    for _ in range(data.draw(st.integers(1, 4))):
        batch[data.draw(st.integers(0, len(batch) - 1))] = data.draw(st.integers(0, 255))
    del batch[data.draw(st.integers(0, len(batch))) :]
    with suppress(CorruptBatch, TooLarge):
        decode_records(bytes(batch), max_bytes=MAX_BYTES)


@given(garbage=st.binary(max_size=200))
def test_garbage_records_in_a_sound_frame_are_decoded_or_refused_by_name(garbage: bytes) -> None:
    header = parse_header(build_batch([NewRecord(0, None, None)]))._replace(batch_length=49 + len(garbage))
    batch = pack_header(header._replace(crc=compute_crc(header, garbage))) + garbage
    with suppress(CorruptBatch, TooLarge):
        decode_records(batch, max_bytes=MAX_BYTES)


@pytest.mark.parametrize("codec", CODECS)
def test_a_batch_beyond_the_bound_is_refused(codec: Codec) -> None:
    batch = build_batch([NewRecord(0, None, bytes(5 << 20))], codec=codec)
    with pytest.raises(TooLarge):
        decode_records(batch, max_bytes=MAX_BYTES)


def test_timestamps_wrap_at_64_bits_as_in_java() -> None:
    header = parse_header(build_batch([NewRecord((1 << 63) - 1, None, None)]))
    payload = bytes([12, 0, 2, 0, 1, 1, 0])  # length 6, attributes, timestamp delta 1, offset delta 0, null, null, none
    header = header._replace(batch_length=49 + len(payload))
    forged = pack_header(header._replace(crc=compute_crc(header, payload))) + payload
    assert decode_records(forged, max_bytes=MAX_BYTES)[0].timestamp == -(1 << 63)


def test_iteration_stops_at_a_cut_off_batch() -> None:
    first, second = (build_batch([NewRecord(0, None, value)]) for value in (b"one", b"two"))
    assert [bytes(batch) for batch in iter_batches(first + second[:-1])] == [first]


def test_iteration_refuses_a_senseless_length() -> None:
    with pytest.raises(CorruptBatch):
        list(iter_batches(bytes(100)))


def test_a_builder_refuses_the_record_that_does_not_fit_and_stays_as_it_was() -> None:
    builder = BatchBuilder(size_bytes_max=200)
    assert builder.append(NewRecord(1, None, bytes(500))), "the first record always fits"
    size_bytes = builder.size_bytes
    assert not builder.append(NewRecord(2, None, b"x"))
    assert (builder.count, builder.size_bytes) == (1, size_bytes)
    batch = builder.close(producer_id=9, producer_epoch=1, base_sequence=3)
    assert len(batch) == size_bytes


def test_restamping_changes_the_producer_and_keeps_the_records() -> None:
    batch = build_batch([NewRecord(1, b"k", b"v")] * 2, codec=Codec.LZ4, producer_id=1, producer_epoch=0)
    again = restamp(batch, producer_id=2, producer_epoch=5, base_sequence=(1 << 31) - 1)
    header = parse_header(again)
    assert (header.producer_id, header.producer_epoch, header.last_sequence) == (2, 5, 0)
    assert verify_crc(again)
    assert decode_records(again, max_bytes=MAX_BYTES) == decode_records(batch, max_bytes=MAX_BYTES)
