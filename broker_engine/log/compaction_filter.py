"""What compaction keeps of a batch: the last record of each key, markers and producers' last batches as Kafka does.

Pure: a batch in, its bytes as they should be stored out. Show it all batches of the log in order, since it follows
transactions. Stored batches are hostile: CorruptBatch and TooLarge say that this log cannot be compacted.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping
from hashlib import blake2b

from broker_engine.log.txn_index import AbortedTransaction
from broker_engine.records.control import LastBatch, read_marker
from broker_engine.records.decode import read_payload
from broker_engine.records.header import BatchHeader
from broker_engine.records.rewrite import RecordSlice, empty_batch, iter_slices, rewrite_batch

_KEY_BYTES_KEPT = 15
_DIGEST_BYTES = 16
_NO_OFFSET = -1


class LatestOffsets:
    """The last offset of every key in the dirty part. Long keys by their digest: memory goes with their number only."""

    def __init__(self, keys_max: int) -> None:
        self.end_offset = 0
        """Of what was looked at. Whatever lies behind stays as it is."""
        self._keys_max = keys_max
        self._offsets: dict[bytes, int] = {}

    @property
    def is_full(self) -> bool:
        return len(self._offsets) >= self._keys_max

    def note(self, key: bytes, offset: int) -> None:
        self._offsets[_short(key)] = offset

    def is_latest(self, key: bytes, offset: int) -> bool:
        return offset >= self._offsets.get(_short(key), _NO_OFFSET)


class AbortedRanges:
    """By producer, where each of its aborted transactions begins and ends. One follows the other."""

    def __init__(self) -> None:
        self._starts: dict[int, list[int]] = {}
        self._ends: dict[int, list[int]] = {}

    def note(self, aborted: AbortedTransaction) -> None:
        """In the order of the log."""
        self._starts.setdefault(aborted.producer_id, []).append(aborted.first_offset)
        self._ends.setdefault(aborted.producer_id, []).append(aborted.last_offset)

    def covers(self, header: BatchHeader) -> bool:
        ends = self._ends.get(header.producer_id) if header.is_transactional else None
        if ends is None:
            return False
        number = bisect_right(ends, header.base_offset)
        return number < len(ends) and self._starts[header.producer_id][number] <= header.base_offset


class BatchFilter:
    def __init__(
        self,
        latest: LatestOffsets,
        last_batches: Mapping[int, LastBatch],
        *,
        now_ms: int,
        delete_retention_ms: int,
        decompressed_bytes_max: int,
    ) -> None:
        self._latest = latest
        self._aborted = AbortedRanges()
        self._last_batches = last_batches
        self._now_ms = now_ms
        self._delete_horizon_ms = now_ms + delete_retention_ms
        self._decompressed_bytes_max = decompressed_bytes_max
        self._with_data: set[int] = set()
        """Producers whose present transaction still has a batch in the log."""

    def note_aborted(self, aborted: Iterable[AbortedTransaction]) -> None:
        """Before all else: the log's aborted transactions, in order."""
        for each in aborted:
            self._aborted.note(each)

    def note_keys(self, batch: bytes, header: BatchHeader) -> None:
        """First pass, over the dirty part."""
        if not header.is_control and not self._aborted.covers(header):
            for record in iter_slices(self._payload(batch, header), header.record_count):
                if record.key is not None:
                    self._latest.note(record.key, header.base_offset + record.offset_delta)
        self._latest.end_offset = header.next_offset

    def apply(self, batch: bytes, header: BatchHeader) -> bytes | None:
        """Second pass, over all of it: what to store in place of the batch; None for nothing."""
        if header.base_offset >= self._latest.end_offset:
            return batch
        if header.is_control:
            return self._apply_to_marker(batch, header)
        if header.is_transactional:
            self._with_data.add(header.producer_id)
        payload = self._payload(batch, header)
        slices = list(iter_slices(payload, header.record_count))
        is_aborted = self._aborted.covers(header)
        kept = [] if is_aborted else [record for record in slices if self._keeps(header, record)]
        if not kept:
            return self._emptied(header)
        is_horizon_due = not header.has_delete_horizon and any(record.is_tombstone for record in kept)
        if len(kept) == len(slices) and not is_horizon_due:
            return batch
        horizon_ms = self._delete_horizon_ms if is_horizon_due else None
        return rewrite_batch(header, payload, kept, delete_horizon_ms=horizon_ms)

    def _apply_to_marker(self, batch: bytes, header: BatchHeader) -> bytes | None:
        """A marker stays while its transaction has a batch, and for the delete retention time after that."""
        if not header.is_transactional or read_marker(batch) is None:
            return batch
        has_data = header.producer_id in self._with_data
        self._with_data.discard(header.producer_id)
        if has_data:
            return batch
        if not header.has_delete_horizon:
            payload = self._payload(batch, header)
            slices = list(iter_slices(payload, header.record_count))
            return rewrite_batch(header, payload, slices, delete_horizon_ms=self._delete_horizon_ms)
        return batch if self._now_ms < header.base_timestamp else self._emptied(header)

    def _keeps(self, header: BatchHeader, record: RecordSlice) -> bool:
        if record.key is None:
            return False
        if not self._latest.is_latest(record.key, header.base_offset + record.offset_delta):
            return False
        return not record.is_tombstone or not header.has_delete_horizon or self._now_ms < header.base_timestamp

    def _emptied(self, header: BatchHeader) -> bytes | None:
        last = self._last_batches.get(header.producer_id) if header.has_producer_id else None
        if last is None:
            return None
        is_last_data = not header.is_control and header.last_offset >= last.last_offset != _NO_OFFSET
        is_last_marker = (
            last.last_offset == _NO_OFFSET and header.is_control and header.producer_epoch == last.producer_epoch
        )
        return empty_batch(header) if is_last_data or is_last_marker else None

    def _payload(self, batch: bytes, header: BatchHeader) -> bytes:
        return read_payload(batch, header, max_bytes=self._decompressed_bytes_max)


def _short(key: bytes) -> bytes:
    # Digests are longer than any key that is kept as it is, so the two never meet.
    return key if len(key) <= _KEY_BYTES_KEPT else blake2b(key, digest_size=_DIGEST_BYTES).digest()
