"""`.txnindex` in Kafka's format: the aborted transactions whose markers lie in a segment, in the order of the markers.

A cache like the other indexes, with one difference: no file means no aborted transaction. So it is synced with its
segment, and rebuilt whenever the segment's other indexes are.
"""

from __future__ import annotations

import struct
from bisect import bisect_left
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from broker_engine.log.file_seam import FileHandle, Files, Readable
from broker_engine.records.control import EndedTransaction, OpenTransactions, TxnMarker, is_unreadable, read_marker
from broker_engine.records.header import BatchHeader

if TYPE_CHECKING:
    from broker_engine.log.segment import Segment

_ENTRY = struct.Struct(">hqqqq")
_VERSION = 0
_NO_ENTRY = b"\xff" * _ENTRY.size
"""Room that is kept. An index in which a crash leaves it is not well-formed, and is made anew."""
_PIECE_ENTRIES = 256


class AbortedTransaction(NamedTuple):
    producer_id: int
    first_offset: int
    last_offset: int
    """Of its abort marker."""
    last_stable_offset: int

    @classmethod
    def of(cls, ended: EndedTransaction) -> AbortedTransaction:
        assert ended.is_aborted
        return cls(ended.producer_id, ended.first_offset, ended.last_offset, ended.last_stable_offset)


def pack_entries(entries: Iterable[AbortedTransaction]) -> bytes:
    return b"".join(_ENTRY.pack(_VERSION, *entry) for entry in entries)


def parse_entries(data: bytes) -> list[AbortedTransaction] | None:
    """None where it is not a transaction index."""
    if len(data) % _ENTRY.size:
        return None
    rows = list(_ENTRY.iter_unpack(data))
    return [AbortedTransaction(*row[1:]) for row in rows] if all(row[0] == _VERSION for row in rows) else None


def read_entries(handle: Readable, first: int = 0) -> Iterator[AbortedTransaction]:
    """From the `first`th on, a piece of the file at a time."""
    for number in range(first, handle.size_bytes // _ENTRY.size, _PIECE_ENTRIES):
        piece = handle.pread(_PIECE_ENTRIES * _ENTRY.size, number * _ENTRY.size)
        yield from (AbortedTransaction(*row[1:]) for row in _ENTRY.iter_unpack(piece))


def _first_ended_from(handle: Readable, offset: int) -> int:
    """The number of the first entry whose marker lies at or above `offset`: they stand in the order of the markers."""

    def marker_offset(number: int) -> int:
        return AbortedTransaction(*_ENTRY.unpack(handle.pread(_ENTRY.size, number * _ENTRY.size))[1:]).last_offset

    return bisect_left(range(handle.size_bytes // _ENTRY.size), offset, key=marker_offset)


class TransactionIndex:
    """One segment's file. Made by the first entry, opened on first use.

    Searched where it lies, and not kept in memory: readers of committed records ask with every fetch, and there is no
    bound to what producers abort.
    """

    __slots__ = ("_files", "_handle", "_is_absent", "_path", "_reserved_from")

    def __init__(self, files: Files, path: str, handle: FileHandle | None = None) -> None:
        """`handle`: of the file, while it has another name."""
        self._files = files
        self._path = path
        self._handle = handle
        self._is_absent = False
        """It is known that there is no file: most segments have none."""
        self._reserved_from: int | None = None
        """Where room is kept for entries to come."""

    @property
    def handle(self) -> FileHandle | None:
        """To be synced with the segment; None if nothing was read or written."""
        return self._handle

    def open(self) -> FileHandle | None:
        """None if there is no aborted transaction."""
        if self._handle is None and not self._is_absent:
            self._is_absent = not self._files.exists(self._path)
            self._handle = None if self._is_absent else self._files.open(self._path)
        return self._handle

    @property
    def is_empty(self) -> bool:
        handle = self.open()
        return handle is None or not handle.size_bytes

    @property
    def is_well_formed(self) -> bool:
        if not self._files.exists(self._path):
            return True
        entries = parse_entries(self._files.read_small(self._path))
        return entries is not None and all(one.last_offset < next_.last_offset for one, next_ in pairwise(entries))

    def reserve(self, count: int) -> None:
        """Keep room for so many entries until `release`. OSError: there is none, and nothing is kept."""
        size_bytes = self._open_to_write().size_bytes
        self._append(_NO_ENTRY * count)
        self._reserved_from = size_bytes

    def release(self) -> None:
        if self._handle is not None and self._reserved_from is not None:
            self._handle.truncate(self._reserved_from)
        self._reserved_from = None

    def append(self, entry: AbortedTransaction) -> None:
        self.release()
        self._append(pack_entries([entry]))

    def _open_to_write(self) -> FileHandle:
        self._handle = self._handle or self._files.open(self._path, create=True)
        return self._handle

    def _append(self, data: bytes) -> None:
        handle = self._open_to_write()
        size_bytes = handle.size_bytes
        if handle.append([data]) != len(data):
            handle.truncate(size_bytes)
            raise OSError(0, "the write was cut short: the disk is full, or failing")

    def entries(self) -> list[AbortedTransaction]:
        return list(self.ended_from(0))

    def ended_from(self, offset: int) -> Iterator[AbortedTransaction]:
        """Those whose markers lie at or above it, in order. Reads what is asked for, and little more."""
        handle = self.open()
        return iter(()) if handle is None else read_entries(handle, _first_ended_from(handle, offset))

    def replace(self, entries: Sequence[AbortedTransaction]) -> None:
        self.close()
        self._handle, self._is_absent = None, False
        if entries:
            self._files.write_atomic(self._path, pack_entries(entries), is_durable=True)
        elif self._files.exists(self._path):
            self._files.unlink(self._path)

    def close(self) -> None:
        if self._handle is not None:
            self._handle.close()


def find_aborted(segments: Iterable[Segment], start_offset: int, end_offset: int) -> list[AbortedTransaction]:
    """Every aborted transaction with records in [start_offset, end_offset), in the order of their markers."""
    found = []
    for segment in segments:
        for entry in segment.txn_index.ended_from(start_offset):
            if entry.first_offset < end_offset:
                found.append(entry)
            if entry.last_stable_offset >= end_offset:
                return found
    return found


def rebuild(segments: Sequence[Segment], stale: Collection[Segment]) -> None:
    """Write the indexes of the `stale` segments anew, from the batches of all: transactions span segments."""
    last = max((number for number, segment in enumerate(segments) if segment in stale), default=-1)
    scan = AbortedScan()
    for segment in segments[: last + 1]:
        index = segment.txn_index
        found = scan.entries_of(segment, index.entries() if segment in stale and index.is_well_formed else ())
        if segment in stale:
            index.replace(found)


class AbortedScan:
    """Follows a log's transactions from its first batch on.

    What lies in a hole is not seen: the beginning of a transaction, or its end; nor is a marker that does not verify.
    So behind one the index that there is knows better, and what it says of markers inside is all that is known of them.
    """

    def __init__(self) -> None:
        self._transactions = OpenTransactions()
        self._is_damaged = False

    def entries_of(self, segment: Segment, stored: Iterable[AbortedTransaction]) -> list[AbortedTransaction]:
        """For the next segment. `stored`: its index, as far as it can be read."""
        self._is_damaged |= bool(segment.holes)
        found: dict[int, AbortedTransaction] = {}
        aborts: set[tuple[int, int]] = set()
        for header, marker in _transactional_batches(segment):
            is_lost = is_unreadable(header, marker)
            self._is_damaged |= is_lost
            ended = self._transactions.observe(header, header.base_offset, marker)
            if ended is not None and ended.is_aborted:
                found[header.base_offset] = AbortedTransaction.of(ended)
            if is_lost or (marker is not None and not marker.is_commit):
                aborts.add((header.producer_id, header.base_offset))
        for entry in stored if self._is_damaged else ():
            if (entry.producer_id, entry.last_offset) in aborts or segment.hole_at(entry.last_offset):
                found[entry.last_offset] = entry
        return [found[offset] for offset in sorted(found)]


def _transactional_batches(segment: Segment) -> Iterator[tuple[BatchHeader, TxnMarker | None]]:
    for batch in segment.batches_near(segment.base_offset):
        header = batch.header
        if header.is_transactional:
            yield header, read_marker(segment.read_batch(batch), verify=True) if header.is_control else None
