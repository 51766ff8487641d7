"""One pass over a history: which value stands at which offset, who sent it with what outcome, who read it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from broker_engine.simulator.history.report import Allowed
from broker_engine.simulator.history.rows import UNCOMMITTED, Partition, Poll, Process, Row, RowType, Send, Value

Place = tuple[Partition, int]


@dataclass(slots=True)
class Sent:
    process: Process
    partition: Partition
    outcome: RowType
    """`invoke`: nobody ever told."""
    offset: int | None
    row: int
    """The number of the row that says most about it."""
    is_in_transaction: bool = False


@dataclass(slots=True)
class Index:
    allowed: Allowed
    sends: dict[Value, Sent] = field(default_factory=dict)
    """In the order of their invocations."""
    values: dict[Partition, dict[int, Value]] = field(default_factory=dict)
    """The first value known at each offset."""
    others: dict[Place, dict[Value, None]] = field(default_factory=dict)
    """Further values at one offset: there should be none."""
    places: dict[Value, Place] = field(default_factory=dict)
    """The first place known of each value."""
    copies: dict[Value, dict[Place, None]] = field(default_factory=dict)
    """Further places of one value: there should be none."""
    read_offsets: dict[Partition, set[int]] = field(default_factory=dict)
    readers: dict[Value, int] = field(default_factory=dict)
    """The first row that read it, among those of readers of committed records."""

    def add(self, number: int, row: Row) -> None:
        for op in row.ops:
            if isinstance(op, Send):
                self._add_send(number, row, op)
            elif isinstance(op, Poll) and row.type != "invoke":
                self._add_poll(number, row, op)

    def _add_send(self, number: int, row: Row, op: Send) -> None:
        known = self.sends.get(op.value)
        if known is None:
            self.sends[op.value] = Sent(row.process, op.partition, row.type, op.offset, number, row.f == "txn")
        else:
            assert known.partition == op.partition, f"value {op.value} was sent to two partitions: values are unique"
            assert row.type != "invoke", f"value {op.value} was sent twice: values are unique"
            known.outcome, known.offset, known.row = row.type, op.offset, number
        if row.type == "ok" and op.offset is not None and row.process not in self.allowed.may_lose:
            self._place(op.value, op.partition, op.offset)

    def _add_poll(self, number: int, row: Row, op: Poll) -> None:
        is_committed = row.f != UNCOMMITTED
        read = self.read_offsets.setdefault(op.partition, set()) if is_committed else set[int]()
        for offset, value in op.records:
            read.add(offset)
            if is_committed:
                self.readers.setdefault(value, number)
            self._place(value, op.partition, offset)

    def _place(self, value: Value, partition: Partition, offset: int) -> None:
        at_offset = self.values.setdefault(partition, {})
        if at_offset.setdefault(offset, value) != value:
            self.others.setdefault((partition, offset), {})[value] = None
        place = (partition, offset)
        if self.places.setdefault(value, place) != place:
            self.copies.setdefault(value, {})[place] = None


def index_of(rows: Iterable[Row], allowed: Allowed) -> Index:
    index = Index(allowed)
    for number, row in enumerate(rows):
        index.add(number, row)
    return index
