"""Rule 5 at the end of a run: what the indexes of sealed segments say is what their batches say."""

from __future__ import annotations

from collections.abc import Iterator

from broker_engine.log.index import OFFSET_ENTRY, TIME_ENTRY, StoredIndex
from broker_engine.log.partition_log import PartitionLog
from broker_engine.log.scan import scan_batches
from broker_engine.log.segment import Segment


def index_problems(log: PartitionLog) -> Iterator[str]:
    for segment in log._segments:
        if isinstance(segment.offset_index, StoredIndex) and isinstance(segment.time_index, StoredIndex):
            yield from (f"segment {segment.base_offset}: {problem}" for problem in _problems(segment))


def _problems(segment: Segment) -> Iterator[str]:
    batches = list(scan_batches(segment.handle, 0))
    places = {batch.position: batch.header.last_offset - segment.base_offset for batch in batches}
    assert isinstance(segment.offset_index, StoredIndex)
    for offset, position in OFFSET_ENTRY.iter_unpack(segment.offset_index.read_all()):
        if places.get(position) != offset:
            yield f"the index has {offset} at {position}, the log {places.get(position)}"
    assert isinstance(segment.time_index, StoredIndex)
    last = [timestamp for timestamp, _ in TIME_ENTRY.iter_unpack(segment.time_index.read_all())][-1:]
    newest = max((batch.header.max_timestamp for batch in batches), default=-1)
    if newest >= 0 and last != [newest]:
        yield f"the time index ends with {last}, the newest record is of {newest}"
