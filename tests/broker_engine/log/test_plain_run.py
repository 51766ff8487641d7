"""A recovery scan that passes many batches at once finds what one that looks at each finds."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from broker_engine.log.checkpoints import EpochCache
from broker_engine.log.config import LogConfig
from broker_engine.log.files import MemoryFiles
from broker_engine.log.index import GrowingIndex
from broker_engine.log.scan import scan_batches
from broker_engine.log.segment import LOG_SUFFIX, Segment, segment_path
from broker_engine.log.segment_recovery import SegmentPlan, SegmentRecovery, open_segment
from broker_engine.records.builder import NewRecord, build_batch
from tests.broker_engine.log.harness import START_MS

DIRECTORY = "orders-0"


@dataclass(frozen=True)
class Draft:
    """One batch of a segment file; most drafts are ordinary."""

    record_count: int = 1
    value_bytes: int = 10
    gap: int = 0
    new_epochs: int = 0
    timestamp_shift_ms: int | None = -5
    """Against the file's time of change; None: no timestamp."""
    is_control: bool = False


drafts = st.builds(
    Draft,
    record_count=st.integers(1, 4),
    value_bytes=st.integers(0, 200),
    gap=st.sampled_from([0, 0, 0, 0, 0, 0, 3]),
    new_epochs=st.sampled_from([0, 0, 0, 0, 0, 0, 0, 1]),
    timestamp_shift_ms=st.one_of(st.integers(-1000, 0), st.integers(-1000, 1000), st.none()),
    is_control=st.sampled_from([False] * 9 + [True]),
)


def segment_bytes(batches: list[Draft]) -> bytearray:
    data = bytearray()
    offset = epoch = 0
    for draft in batches:
        offset, epoch = offset + draft.gap, epoch + draft.new_epochs
        stamp = -1 if draft.timestamp_shift_ms is None else START_MS + draft.timestamp_shift_ms
        records = [NewRecord(stamp, b"k", bytes(draft.value_bytes))] * draft.record_count
        data += build_batch(records, base_offset=offset, leader_epoch=epoch, is_control=draft.is_control)
        offset += draft.record_count
    return data


def files_with(data: bytes) -> MemoryFiles:
    files = MemoryFiles(now_ms=lambda: START_MS)
    files.make_dirs(DIRECTORY)
    files.open(segment_path(DIRECTORY, 0, LOG_SUFFIX), create=True).append([data])
    return files


def one_by_one(files: MemoryFiles, config: LogConfig) -> tuple[Segment, int]:
    segment = open_segment(files, DIRECTORY, 0)
    position, epoch = 0, -1
    for batch in scan_batches(segment.handle, 0, verify=True):
        header = batch.header
        if not segment.has_room_for(header) or header.partition_leader_epoch < epoch:
            break
        interval_bytes = config.index_interval_bytes
        segment.observe(batch.position, header, append_ms=START_MS, index_interval_bytes=interval_bytes)
        position, epoch = batch.end_position, header.partition_leader_epoch
    return segment, position


def knowledge_of(segment: Segment) -> tuple[object, ...]:
    assert isinstance(segment.offset_index, GrowingIndex)
    assert isinstance(segment.time_index, GrowingIndex)
    return (
        segment.end_offset,
        segment.max_timestamp,
        segment.first_timestamp,
        segment.newest_ms,
        segment.offset_index.pack(),
        segment.time_index.pack(),
        segment.bytes_to_entry(0),
    )


@settings(max_examples=150, deadline=None)
@given(st.lists(drafts, max_size=40), st.integers(0, 1500), st.none() | st.floats(0, 1))
def test_many_at_once_is_the_same_as_one_by_one(
    batches: list[Draft], interval_bytes: int, damage: float | None
) -> None:
    data, config = segment_bytes(batches), LogConfig(index_interval_bytes=interval_bytes)
    if damage is not None and data:
        data[min(len(data) - 1, int(damage * len(data)))] ^= 0x10
    files = files_with(bytes(data))
    expected, end_position = one_by_one(files, config)
    plan = SegmentPlan(files=files, directory=DIRECTORY, base_offset=0, config=config, recovery_point=0)
    recovery = SegmentRecovery(plan, EpochCache())
    recovery.run()
    assume(recovery.suspect_position is None)  # else nothing is cut, and all begins anew without that batch
    assert knowledge_of(recovery.segment) == knowledge_of(expected)
    assert recovery.segment.size_bytes == end_position
    assert recovery.cut_bytes == len(data) - end_position
