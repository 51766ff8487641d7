"""A batch stored in its topic's codec has everything that the producer sent, and only its packing is another."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from broker_engine.errors import BrokerError, ErrorCode
from broker_engine.records.batch import (
    BatchHeader,
    Codec,
    ProduceLimits,
    TooLarge,
    check_produced,
    decode_records,
    iter_batches,
    parse_header,
    verify_crc,
)
from broker_engine.records.builder import NewRecord, build_batch
from broker_engine.records.compression import StoredCompression, compress, decompress
from broker_engine.records.header import BATCH_LENGTH_MIN, HEADER_SIZE_BYTES, compute_crc, pack_header
from broker_engine.records.recompress import as_stored

GOLDEN = Path(__file__).parents[2] / "golden" / "segments" / "golden-broker-zstd-0" / "00000000000000000000.log"
NOW_MS = 1_700_000_000_000
RECORDS = [
    NewRecord(NOW_MS, b"k", b"v" * 300, [("h", b"1"), ("h", None)]),
    NewRecord(NOW_MS - 5, None, None),
    NewRecord(NOW_MS + 9, b"", b""),
]


def produced(codec: Codec, **options: Any) -> memoryview:
    return memoryview(build_batch(RECORDS, codec=codec, **options))


def store(batch: memoryview, limits: ProduceLimits) -> tuple[memoryview, BatchHeader]:
    header = check_produced(batch, produce_version=9, limits=limits, now_ms=NOW_MS)
    return as_stored(batch, header, limits)


@pytest.mark.parametrize("wanted", list(Codec))
@pytest.mark.parametrize("sent", list(Codec))
def test_every_codec_becomes_every_other(sent: Codec, wanted: Codec) -> None:
    batch = produced(sent, producer_id=7, producer_epoch=3, base_sequence=40, is_transactional=True)
    stored, header = store(batch, ProduceLimits(stored_as=StoredCompression(wanted)))
    assert verify_crc(stored)
    assert parse_header(stored) == header
    kept = parse_header(batch)._replace(batch_length=header.batch_length, crc=header.crc, attributes=header.attributes)
    assert header == kept
    assert (header.codec, header.is_transactional) == (wanted, True)
    assert decode_records(stored, max_bytes=1 << 20) == decode_records(batch, max_bytes=1 << 20)


def test_a_batch_in_the_topics_codec_is_stored_byte_by_byte_as_sent() -> None:
    batch = produced(Codec.ZSTD)
    stored, _ = store(batch, ProduceLimits(stored_as=StoredCompression(Codec.ZSTD, 19)))
    assert stored is batch


def test_it_is_what_kafka_made_of_the_same_records() -> None:
    """Apache Kafka's broker turned batches of all codecs into these, `compression.type=zstd`."""
    count = 0
    for golden in iter_batches(GOLDEN.read_bytes()):
        theirs = parse_header(golden)
        records = decode_records(golden, max_bytes=1 << 20)
        sent = build_batch([NewRecord(r.timestamp, r.key, r.value, r.headers) for r in records], codec=Codec.GZIP)
        limits = ProduceLimits(stored_as=StoredCompression(Codec.ZSTD, 3))
        stored, ours = store(memoryview(sent), limits)
        # Where the log puts a batch is not the codec's affair, and another zstd release packs otherwise.
        expected = theirs._replace(
            base_offset=0, partition_leader_epoch=-1, crc=ours.crc, batch_length=ours.batch_length
        )
        assert ours == expected
        assert _payload(stored) == _payload(golden)
        count += 1
    assert count > 3


def _payload(batch: memoryview) -> bytes:
    return decompress(Codec.ZSTD, batch[HEADER_SIZE_BYTES:], 1 << 20)


@pytest.mark.parametrize(
    ("codec", "low", "high"), [(Codec.GZIP, 1, 9), (Codec.LZ4, 3, 17), (Codec.LZ4, 9, 12), (Codec.ZSTD, -131_072, 22)]
)
def test_levels_are_kafkas(codec: Codec, low: int, high: int) -> None:
    """For lz4 Kafka's default, 9, is the fast compressor: it packs less than any level of the slow one."""
    data = b"".join(json.dumps({"number": number, "square": number**2}).encode() for number in range(5000))
    packed = [compress(codec, data, level) for level in (low, high)]
    assert len(packed[0]) > len(packed[1])
    assert all(decompress(codec, frame, len(data)) == data for frame in packed)


def test_gzip_level_minus_one_is_the_codecs_default() -> None:
    data = b"abc" * 1000
    assert compress(Codec.GZIP, data, -1) == compress(Codec.GZIP, data)


def test_what_grows_beyond_max_message_bytes_is_refused() -> None:
    batch = memoryview(build_batch([NewRecord(NOW_MS, b"k", bytes(50_000))], codec=Codec.LZ4))
    with pytest.raises(BrokerError) as refused:
        store(batch, ProduceLimits(max_message_bytes=10_000, stored_as=StoredCompression(Codec.NONE)))
    assert refused.value.code is ErrorCode.MESSAGE_TOO_LARGE


def test_decompression_is_bounded() -> None:
    bomb = memoryview(build_batch([NewRecord(NOW_MS, b"k", bytes(5_000_000))], codec=Codec.ZSTD))
    with pytest.raises(TooLarge):
        store(bomb, ProduceLimits(decompressed_bytes_max=1 << 20, stored_as=StoredCompression(Codec.LZ4)))


def test_records_are_walked_only_where_the_codec_changes() -> None:
    junk = _with_payload(build_batch(RECORDS, codec=Codec.GZIP), b"this is no gzip stream at all")
    assert store(junk, ProduceLimits(stored_as=StoredCompression(Codec.GZIP)))[0] is junk
    with pytest.raises(BrokerError) as refused:
        store(junk, ProduceLimits(stored_as=StoredCompression(Codec.ZSTD)))
    assert refused.value.code is ErrorCode.INVALID_RECORD


def test_offset_deltas_of_an_uncompressed_batch_are_checked_before_it_is_compressed() -> None:
    good = build_batch(RECORDS)
    second_delta_at = (
        good.index(b"\x00\x09\x02", HEADER_SIZE_BYTES + 300) + 2
    )  # attributes, timestamp delta -5, offset delta 1
    payload = bytearray(good[HEADER_SIZE_BYTES:])
    payload[second_delta_at - HEADER_SIZE_BYTES] = 8
    bad = _with_payload(good, bytes(payload))
    assert store(bad, ProduceLimits(stored_as=StoredCompression(Codec.NONE)))[0] is bad
    with pytest.raises(BrokerError) as refused:
        store(bad, ProduceLimits(stored_as=StoredCompression(Codec.LZ4)))
    assert refused.value.code is ErrorCode.INVALID_RECORD


def _with_payload(batch: bytes, payload: bytes) -> memoryview:
    header = parse_header(batch)._replace(batch_length=BATCH_LENGTH_MIN + len(payload))
    return memoryview(pack_header(header._replace(crc=compute_crc(header, payload))) + payload)
