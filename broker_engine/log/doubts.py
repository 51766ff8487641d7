"""Where a reader finds other offsets than it asked for: did compaction take those, or is a batch on the way rotten?

A batch whose length has rotted hides those behind it, and one whose offset has does not lie where it says. Who trusted
the way would pass over records that are there, and a follower would store the gap as if it were the leader's.
"""

from __future__ import annotations

from broker_engine.log.damage import Hole
from broker_engine.log.scan import ScannedBatch, scan_batches
from broker_engine.log.segment import Segment
from broker_engine.log.verify import EpochOf, is_next

_WINDOW_BYTES = 64 * 1024
"""Readers of compacted topics come here with nearly every fetch, on the event loop."""


def hole_on_the_way(segment: Segment, offset: int, found: ScannedBatch | None) -> Hole | None:
    """Damage that is known, between `offset` and the batch that was found for it."""
    end = segment.size_bytes if found is None else found.position
    return next((hole for hole in segment.holes if offset < hole.end_offset and hole.position < end), None)


def is_way_sound(segment: Segment, offset: int, found: ScannedBatch | None, epoch_of: EpochOf) -> bool:
    """Is `found` really the first batch that ends at or above `offset`; None: is there really none in the segment?

    Reads some before the way, and one behind it: no CRC covers a batch's offset, only its neighbours tell.
    """
    position = segment.position_before(offset)
    end, next_offset = segment.readable_end(position), segment.base_offset
    for batch in scan_batches(segment.handle, position, end, verify=True, window_bytes=_WINDOW_BYTES):
        if not is_next(segment, batch.header, next_offset, epoch_of):
            return False
        if found is not None and batch.position > found.position:
            return True
        position, next_offset = batch.end_position, batch.header.next_offset
    is_before_damage = found is not None and found.header.base_offset > offset and end < segment.size_bytes
    return position == end and not is_before_damage  # nobody behind it could say that it lies too high
