"""A partition's end never goes back: what was read, or acknowledged by all, lies below every end that is told later.

Later: asked for after the other was known. Between two processes it is `stale-end`: a leader that was deposed without
noticing may still tell what it knew, where a client did not hear of its successor either.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from broker_engine.simulator.history.report import Allowed, Anomaly, Kind
from broker_engine.simulator.history.rows import UNCOMMITTED, EndOffset, Epoch, Partition, Poll, Process, Row, Send

Bounds = dict[Partition, tuple[int, int]]
"""The highest end known, and the row that showed it."""


@dataclass(slots=True)
class _Known:
    everybody: Bounds = field(default_factory=dict)
    own: dict[Process, Bounds] = field(default_factory=dict)
    asked: dict[tuple[Process, Partition], tuple[int, int]] = field(default_factory=dict)
    """What everybody knew when the question was asked."""

    def learn(self, number: int, process: Process, partition: Partition, end: int) -> None:
        for bounds in (self.everybody, self.own.setdefault(process, {})):
            if end > bounds.get(partition, (-1, 0))[0]:
                bounds[partition] = (end, number)


def end_order(rows: Sequence[Row], allowed: Allowed) -> Iterator[Anomaly]:
    known = _Known()
    for number, row in enumerate(rows):
        for op in row.ops:
            if isinstance(op, EndOffset):
                yield from _end(known, number, row, op)
            elif row.type != "invoke" and row.f not in ("txn", UNCOMMITTED) and not isinstance(op, Epoch):
                _learn(known, number, row, op, allowed)


def _learn(known: _Known, number: int, row: Row, op: Send | Poll, allowed: Allowed) -> None:
    if isinstance(op, Poll):
        if op.records:
            known.learn(number, row.process, op.partition, max(offset for offset, _ in op.records) + 1)
    elif row.type == "ok" and op.offset is not None and row.process not in allowed.may_lose:
        known.learn(number, row.process, op.partition, op.offset + 1)


def _end(known: _Known, number: int, row: Row, op: EndOffset) -> Iterator[Anomaly]:
    key = (row.process, op.partition)
    if row.type == "invoke":
        known.asked[key] = known.everybody.get(op.partition, (-1, 0))
        return
    asked = known.asked.pop(key, (-1, 0))
    if row.type != "ok" or op.offset is None:
        return
    own = known.own.get(row.process, {}).get(op.partition, (-1, 0))
    for kind, (end, shown) in ((Kind.NONMONOTONIC_END, own), (Kind.STALE_END, asked)):
        if op.offset < end:
            detail = f"{row.process} was told {op.offset} in row {number}, but row {shown} knew {end}"
            yield Anomaly(kind, detail, op.partition)
            break
    known.learn(number, row.process, op.partition, op.offset)
