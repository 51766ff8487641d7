"""Producer snapshots in Kafka's format: its own files come out as they went in, and nothing that we know is lost."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker_engine.log.files import DiskFiles
from broker_engine.log.scan import scan_batches
from broker_engine.partition.producer_snapshot import ProducerEntry, pack_snapshot, parse_snapshot
from broker_engine.partition.producers import ProducerStates
from broker_engine.records.batch import BatchHeader, parse_header
from broker_engine.records.builder import NewRecord, build_batch
from broker_engine.records.control import EndedTransaction, TxnMarker, marker_record, read_marker

GOLDEN = Path(__file__).parents[2] / "golden" / "segments"
SNAPSHOTS = sorted(str(path.relative_to(GOLDEN)) for path in GOLDEN.glob("*/*.snapshot"))
NOW_MS = 1_800_000_000_000


@pytest.mark.parametrize("name", SNAPSHOTS)
def test_kafkas_snapshots_come_out_as_they_went_in(name: str) -> None:
    written_by_kafka = (GOLDEN / name).read_bytes()
    entries = parse_snapshot(written_by_kafka)
    assert entries is not None
    assert pack_snapshot(entries) == written_by_kafka
    restored = ProducerStates()
    restored.restore(entries, NOW_MS)
    assert pack_snapshot(list(restored.entries())) == written_by_kafka


@pytest.mark.parametrize("name", SNAPSHOTS)
def test_states_rebuilt_from_kafkas_log_say_what_its_snapshot_says(name: str) -> None:
    """We may know more: Kafka forgets by the batches' own timestamps, which in these logs lie years back."""
    entries = parse_snapshot((GOLDEN / name).read_bytes())
    assert entries is not None
    rebuilt = {entry.producer_id: entry for entry in rebuild((GOLDEN / name).parent, int(Path(name).stem)).entries()}
    for entry in entries:
        assert rebuilt[entry.producer_id] == entry


def rebuild(folder: Path, end_offset: int) -> ProducerStates:
    states = ProducerStates()
    for log_file in sorted(folder.glob("*.log")):
        handle = DiskFiles().open(str(log_file))
        for position, header in scan_batches(handle, 0):
            if header.base_offset < end_offset:
                marker = read_marker(handle.pread(header.size_bytes, position)) if header.is_control else None
                states.record(header, header.base_offset, NOW_MS, marker)
    return states


@pytest.mark.parametrize("damage", ["cut", "flipped", "version", "empty", "count"])
def test_a_damaged_snapshot_is_none(damage: str) -> None:
    whole = pack_snapshot([ProducerEntry(7, 0, 4, 4, 4, 1000, -1, -1)])
    damaged = {
        "cut": whole[:-1],
        "flipped": whole[:20] + bytes([whole[20] ^ 1]) + whole[21:],
        "version": b"\x00\x02" + whole[2:],
        "empty": b"",
        "count": whole[:6] + struct.pack(">i", 2) + whole[10:],
    }[damage]
    assert parse_snapshot(whole) is not None
    assert parse_snapshot(damaged) is None


@given(st.binary(max_size=200))
def test_any_bytes_parse_or_are_none(data: bytes) -> None:
    entries = parse_snapshot(data)
    assert entries is None or pack_snapshot(entries) == data[: 10 + 46 * len(entries)]


def data_batch(producer_id: int, epoch: int, sequence: int, count: int, *, is_transactional: bool = False) -> bytes:
    return build_batch(
        [NewRecord(NOW_MS + sequence, b"k", b"v")] * count,
        producer_id=producer_id,
        producer_epoch=epoch,
        base_sequence=sequence,
        is_transactional=is_transactional,
    )


def marker_batch(producer_id: int, epoch: int, *, is_commit: bool) -> bytes:
    key, value = marker_record(TxnMarker(is_commit, coordinator_epoch=3))
    return build_batch(
        [NewRecord(NOW_MS + 999, key, value)],
        producer_id=producer_id,
        producer_epoch=epoch,
        is_transactional=True,
        is_control=True,
    )


def note(states: ProducerStates, batch: bytes, offset: int) -> tuple[BatchHeader, EndedTransaction | None]:
    header = parse_header(batch)
    return header, states.record(header, offset, NOW_MS, read_marker(batch) if header.is_control else None)


@given(st.lists(st.tuples(st.integers(1, 3), st.integers(1, 3), st.booleans()), max_size=40))
def test_a_restored_state_answers_every_resend_as_the_one_it_was_taken_from(
    sends: list[tuple[int, int, bool]],
) -> None:
    states, offset, next_sequence = ProducerStates(), 0, dict.fromkeys((1, 2, 3), 0)
    sent = []
    for producer_id, count, has_marker in sends:
        header, _ = note(states, data_batch(producer_id, 0, next_sequence[producer_id], count), offset)
        sent.append(header)
        next_sequence[producer_id] += count
        offset += count
        if has_marker:
            note(states, marker_batch(producer_id, 0, is_commit=True), offset)
            offset += 1
    entries = parse_snapshot(pack_snapshot(list(states.entries())))
    assert entries is not None
    restored = ProducerStates()
    restored.restore(entries, NOW_MS)
    for producer_id in next_sequence:
        before, after = states.find(producer_id), restored.find(producer_id)
        assert (before and list(before.batches)) == (after and list(after.batches))
    assert list(restored.entries()) == list(states.entries())


def test_a_transaction_is_open_from_its_first_batch_to_its_marker() -> None:
    states = ProducerStates()
    note(states, data_batch(1, 0, 0, 2, is_transactional=True), 10)
    note(states, data_batch(2, 0, 0, 1, is_transactional=True), 12)
    note(states, data_batch(1, 0, 2, 1, is_transactional=True), 13)
    assert states.transactions.first_offset == 10
    _, aborted = note(states, marker_batch(2, 0, is_commit=False), 14)
    assert aborted == EndedTransaction(2, 12, 14, last_stable_offset=10, is_aborted=True)
    _, committed = note(states, marker_batch(1, 1, is_commit=True), 15)  # the marker raises the epoch
    assert committed == EndedTransaction(1, 10, 15, last_stable_offset=16, is_aborted=False)
    assert states.transactions.first_offset is None


def test_an_open_transaction_keeps_its_producer_for_as_long_as_it_lasts() -> None:
    states = ProducerStates(expiration_ms=1000, producers_max=1)
    note(states, data_batch(1, 0, 0, 1, is_transactional=True), 0)
    note(states, data_batch(2, 0, 0, 1), 1)
    assert states.expire(NOW_MS + 5000) == 0
    assert states.find(1) is not None
    note(states, marker_batch(1, 0, is_commit=True), 2)
    assert states.expire(NOW_MS + 10_000) == 1
