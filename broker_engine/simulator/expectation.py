"""What a log may hold after a crash, as the workload learned it: a list of batches, and how much of it is promised.

Events carry the number of file operations that had been recorded when they became true. An append counts as possible
from before its first write, a promise (flush) only from after its last sync.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass, field
from typing import NamedTuple

from broker_engine.log.txn_index import AbortedTransaction
from broker_engine.records.control import TxnMarker
from broker_engine.records.decode import Record
from broker_engine.records.header import BatchHeader


class StoredBatch(NamedTuple):
    header: BatchHeader
    data: bytes
    records: tuple[Record, ...]
    marker: TxnMarker | None
    aborted: AbortedTransaction | None
    """The transaction that this marker aborted."""


class Appending(NamedTuple):
    batch: StoredBatch


class Flushed(NamedTuple):
    durable_offset: int


class StartMayRise(NamedTuple):
    offset: int


class Cutting(NamedTuple):
    offset: int


class WasCut(NamedTuple):
    offset: int


Event = Appending | Flushed | StartMayRise | Cutting | WasCut


@dataclass(slots=True)
class Expectation:
    batches: list[StoredBatch] = field(default_factory=list)
    bases: list[int] = field(default_factory=list)
    """Base offsets of the batches, for looking one up."""
    durable_offset: int = 0
    start_offset_max: int = 0

    def apply(self, event: Event) -> None:
        match event:
            case Appending(batch):
                self.batches.append(batch)
                self.bases.append(batch.header.base_offset)
            case Flushed(offset):
                self.durable_offset = max(self.durable_offset, offset)
            case StartMayRise(offset):
                self.start_offset_max = max(self.start_offset_max, offset)
            case Cutting(offset):
                self.durable_offset = min(self.durable_offset, offset)
            case WasCut(offset):
                kept = bisect_left(self.bases, offset)
                del self.batches[kept:], self.bases[kept:]

    def between(self, start_offset: int, end_offset: int) -> list[StoredBatch]:
        """Those that begin in [start_offset, end_offset)."""
        return self.batches[bisect_left(self.bases, start_offset) : bisect_left(self.bases, end_offset)]


class Timeline:
    """Events in order, to be played back beside the operations."""

    def __init__(self) -> None:
        self._events: list[tuple[int, Event]] = []
        self._next = 0
        self.expectation = Expectation()

    def note(self, operation_count: int, event: Event) -> None:
        self._events.append((operation_count, event))

    def rewound(self) -> Timeline:
        """The same events, from the beginning."""
        again = Timeline()
        again._events = self._events
        return again

    def advance_to(self, operation_count: int) -> Expectation:
        """What holds when so many operations were carried out, the next one perhaps half."""
        while self._next < len(self._events) and self._events[self._next][0] <= operation_count:
            self.expectation.apply(self._events[self._next][1])
            self._next += 1
        return self.expectation
