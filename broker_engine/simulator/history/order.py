"""Anomalies of order: readers that skip or go back, senders whose records stand in another order."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from broker_engine.simulator.history.index import Index
from broker_engine.simulator.history.report import Anomaly, Kind
from broker_engine.simulator.history.rows import REPOSITIONING, UNCOMMITTED, Partition, Poll, Process, Row


class _Ranks:
    """Offsets that somebody read, in order: of two neighbours, nothing readable lies between."""

    def __init__(self, index: Index) -> None:
        self._ranks = {
            partition: {offset: rank for rank, offset in enumerate(sorted(offsets))}
            for partition, offsets in index.read_offsets.items()
        }

    def between(self, partition: Partition, first: int, second: int) -> int:
        ranks = self._ranks[partition]
        return ranks[second] - ranks[first] - 1


def poll_order(rows: Sequence[Row], index: Index) -> Iterator[Anomaly]:
    """Within one row the anomaly is internal (`int-`), between two rows of a process it is external."""
    ranks = _Ranks(index)
    last: dict[Process, dict[Partition, tuple[int, int]]] = {}
    for number, row in enumerate(rows):
        if row.f in REPOSITIONING:
            last.pop(row.process, None)
        elif row.type != "invoke" and row.f != UNCOMMITTED:
            positions = last.setdefault(row.process, {})
            for op in row.ops:
                if isinstance(op, Poll):
                    yield from _steps(op, number, row.process, positions, ranks)


def _steps(
    op: Poll, number: int, process: Process, positions: dict[Partition, tuple[int, int]], ranks: _Ranks
) -> Iterator[Anomaly]:
    for offset, _ in op.records:
        before = positions.get(op.partition)
        positions[op.partition] = (offset, number)
        if before is None or offset == before[0] + 1:
            continue
        kind = _kind(offset, before, number, ranks.between(op.partition, before[0], offset))
        if kind is not None:
            detail = f"{process} read {before[0]} (row {before[1]}), then {offset} (row {number})"
            yield Anomaly(kind, detail, op.partition)


def _kind(offset: int, before: tuple[int, int], number: int, skipped: int) -> Kind | None:
    is_internal = before[1] == number
    if offset <= before[0]:
        return Kind.INT_NONMONOTONIC_POLL if is_internal else Kind.NONMONOTONIC_POLL
    if skipped > 0:
        return Kind.INT_POLL_SKIP if is_internal else Kind.POLL_SKIP
    return None


def send_order(index: Index) -> Iterator[Anomaly]:
    """Values are held against each other in the order of their invocations; only acknowledged ones have a place."""
    last: dict[tuple[Process, Partition], tuple[int, object]] = {}
    for value, sent in index.sends.items():
        if sent.outcome != "ok" or sent.offset is None:
            continue
        key = (sent.process, sent.partition)
        before = last.get(key)
        last[key] = (sent.offset, value)
        if before is not None and sent.offset <= before[0]:
            detail = f"{sent.process} sent {before[1]} (at {before[0]}) before {value} (at {sent.offset})"
            yield Anomaly(Kind.NONMONOTONIC_SEND, detail, sent.partition, value)
