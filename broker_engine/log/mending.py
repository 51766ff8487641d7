"""A damaged segment made whole again with another replica's bytes, by the steps of a compaction (swap.py).

mending = log.mending_of(base_offset, patches)     # on the loop; None: not now
mending.clean()                                    # T: sound batches, and patches where the holes were
deleted = log.swap_in(mending)                     # None: discard it
mending.finish()                                   # T
log.settle(mending); log.on_mended(mending.patched())
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from broker_engine.log.compaction import Pace, SwapJob, Swapping
from broker_engine.log.config import LogConfig
from broker_engine.log.damage import Hole
from broker_engine.log.file_seam import Files
from broker_engine.log.scan import scan_batches
from broker_engine.log.segment import Segment
from broker_engine.log.txn_index import AbortedScan, AbortedTransaction
from broker_engine.records.batch import iter_batches, parse_header
from broker_engine.records.compression import CorruptBatch
from broker_engine.records.header import BatchHeader

Patches = Mapping[Hole, bytes]
"""Whole, verified batches for each hole of a segment."""


class Mending(Swapping):
    is_of_damaged_log = True

    def __init__(
        self,
        files: Files,
        directory: str,
        config: LogConfig,
        segment: Segment,
        patches: Patches,
        *,
        before: Sequence[Segment],
    ) -> None:
        """`before`: the log's segments up to this one, where transactions that end in it may have begun."""
        super().__init__(SwapJob(files, directory, config), [segment])
        self._patches = patches
        self._is_transactional = any(header.is_transactional for header in self.patched())
        self._before = before if self._is_transactional else ()
        txn_index = segment.txn_index.open()
        self._pinned = [each.handle for each in (*self._before, segment)] + ([] if txn_index is None else [txn_index])
        for handle in self._pinned:
            handle.pin()

    def patched(self) -> Iterator[BatchHeader]:
        """The batches that were damaged."""
        for patch in self._patches.values():
            yield from map(parse_header, iter_batches(patch))

    def release(self) -> None:
        """Always, at the end, on the loop."""
        for handle in self._pinned:
            handle.unpin()

    def _aborted_in(self, target: Segment) -> list[AbortedTransaction]:
        """The index may have been written while the patches were missing."""
        if not self._is_transactional:
            return super()._aborted_in(target)
        scan = AbortedScan()
        for segment in self._before:
            scan.entries_of(segment, ())
        return scan.entries_of(target, self.sources[0].txn_index.entries())

    def _copy(self, source: Segment, target: Segment, pace: Pace) -> bool:
        position = 0
        for hole, patch in sorted(self._patches.items()):
            self._copy_sound(source, target, position, hole.position, pace)
            for batch in iter_batches(patch):
                self._append(target, bytes(batch))
            position = hole.end_position
        self._copy_sound(source, target, position, source.size_bytes, pace)
        return True

    def _copy_sound(self, source: Segment, target: Segment, start: int, end: int, pace: Pace) -> None:
        position = start
        for batch in scan_batches(source.handle, start, end, verify=True):
            self._append(target, source.read_batch(batch))
            position = batch.end_position
            pace(batch.header.size_bytes)
        if position != end:
            raise CorruptBatch(f"the segment at offset {source.base_offset} is damaged at byte {position}, too")
