"""`.txnindex` in Kafka's format: the aborted transactions whose markers lie in a segment, in the order of the markers.

A cache like the other indexes, with one difference: no file means no aborted transaction. So it is synced with its
segment, and rebuilt whenever the segment's other indexes are.
"""

from __future__ import annotations

import struct
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from broker_engine.log.file_seam import FileHandle, Files
from broker_engine.records.control import EndedTransaction, OpenTransactions, read_marker

if TYPE_CHECKING:
    from broker_engine.log.segment import Segment

_ENTRY = struct.Struct(">hqqqq")
_VERSION = 0
_REMEMBERED_MAX = 512
"""Entries of one segment: readers of committed records ask with every fetch."""


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


class TransactionIndex:
    """One segment's file. Made by the first entry, opened on first use."""

    __slots__ = ("_files", "_handle", "_path", "_remembered")

    def __init__(self, files: Files, path: str) -> None:
        self._files = files
        self._path = path
        self._handle: FileHandle | None = None
        self._remembered: list[AbortedTransaction] | None = None

    @property
    def handle(self) -> FileHandle | None:
        """To be synced with the segment; None if nothing was read or written."""
        return self._handle

    @property
    def is_well_formed(self) -> bool:
        return not self._files.exists(self._path) or parse_entries(self._files.read_small(self._path)) is not None

    def append(self, entry: AbortedTransaction) -> None:
        handle = self._handle = self._handle or self._files.open(self._path, create=True)
        data = pack_entries([entry])
        size_bytes = handle.size_bytes
        if handle.append([data]) != len(data):
            handle.truncate(size_bytes)
            raise OSError(0, "the write was cut short: the disk is full, or failing")
        self._remembered = None

    def entries(self) -> Sequence[AbortedTransaction]:
        if self._remembered is not None:
            return self._remembered
        found = self._read()
        if len(found) <= _REMEMBERED_MAX:
            self._remembered = found
        return found

    def _read(self) -> list[AbortedTransaction]:
        if self._handle is None:
            if not self._files.exists(self._path):
                return []
            self._handle = self._files.open(self._path)
        return parse_entries(self._handle.pread(self._handle.size_bytes, 0)) or []

    def preset(self, entries: list[AbortedTransaction]) -> None:
        """What its file will say: it does not have its name yet."""
        self._remembered = entries

    def replace(self, entries: Sequence[AbortedTransaction]) -> None:
        self.close()
        self._handle = self._remembered = None
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
        for entry in segment.txn_index.entries():
            if entry.last_offset >= start_offset and entry.first_offset < end_offset:
                found.append(entry)
            if entry.last_stable_offset >= end_offset:
                return found
    return found


def rebuild(segments: Sequence[Segment], stale: Collection[Segment]) -> None:
    """Write the indexes of the `stale` segments anew, from the batches of all: transactions span segments."""
    last = max((number for number, segment in enumerate(segments) if segment in stale), default=-1)
    transactions = OpenTransactions()
    for segment in segments[: last + 1]:
        aborted = list(_aborted_in(segment, transactions))
        if segment in stale:
            segment.txn_index.replace(aborted)


def _aborted_in(segment: Segment, transactions: OpenTransactions) -> Iterator[AbortedTransaction]:
    for batch in segment.batches_near(segment.base_offset):
        header = batch.header
        if header.is_transactional:
            marker = read_marker(segment.read_batch(batch)) if header.is_control else None
            ended = transactions.observe(header, header.base_offset, marker)
            if ended is not None and ended.is_aborted:
                yield AbortedTransaction.of(ended)
