"""The codecs: round trips, bounds, and what other Kafka programs need of the frames."""

from __future__ import annotations

import gzip
import os

import cramjam
import pytest
from aiokafka.codec import lz4_decode, snappy_decode, snappy_encode, zstd_decode

from broker_engine.records.compression import Codec, CorruptBatch, TooLarge, compress, decompress

DATA = os.urandom(500) * 400


@pytest.mark.parametrize("codec", list(Codec))
def test_round_trip_at_exactly_the_bound(codec: Codec) -> None:
    packed = compress(codec, DATA)
    assert decompress(codec, packed, len(DATA)) == DATA
    with pytest.raises(TooLarge):
        decompress(codec, packed, len(DATA) - 1)


@pytest.mark.parametrize("codec", [Codec.GZIP, Codec.SNAPPY, Codec.LZ4, Codec.ZSTD])
def test_cut_and_wrong_data_are_corrupt(codec: Codec) -> None:
    packed = compress(codec, DATA)
    for bad in (b"", b"junk that is no frame of any codec", packed[:-3]):
        if codec == Codec.SNAPPY and not bad:
            continue
        with pytest.raises((CorruptBatch, TooLarge)):
            decompress(codec, bad, 1 << 20)


def test_an_unknown_codec_is_corrupt() -> None:
    with pytest.raises(CorruptBatch):
        decompress(5, b"x", 10)


def test_plain_snappy_and_xerial_snappy_are_both_read() -> None:
    assert decompress(Codec.SNAPPY, bytes(cramjam.snappy.compress_raw(DATA)), 1 << 20) == DATA
    assert decompress(Codec.SNAPPY, snappy_encode(DATA, xerial_compatible=True), 1 << 20) == DATA


def test_other_programs_read_our_frames() -> None:
    assert snappy_decode(compress(Codec.SNAPPY, DATA)) == DATA
    assert lz4_decode(compress(Codec.LZ4, DATA)) == DATA
    assert zstd_decode(compress(Codec.ZSTD, DATA)) == DATA


def test_lz4_blocks_are_independent_because_java_refuses_linked_ones() -> None:
    assert compress(Codec.LZ4, DATA)[4] & 0x20


def test_gzip_members_in_a_row_are_one_stream() -> None:
    assert decompress(Codec.GZIP, gzip.compress(b"one") + gzip.compress(b"two"), 100) == b"onetwo"


def test_a_zstd_frame_with_a_giant_window_is_refused_before_it_allocates() -> None:
    frame = b"\x28\xb5\x2f\xfd" + bytes([0x00, 0xFF]) + bytes(20)
    with pytest.raises(TooLarge):
        decompress(Codec.ZSTD, frame, 1 << 20)
