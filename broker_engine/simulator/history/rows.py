"""A history: what clients asked of a cluster and what they were told, one row at a time, in the order it happened.

    history = History()
    history.invoke("p1", "send", [Send(orders, 17)], time=4)
    history.ok("p1", "send", [Send(orders, 17, offset=3)], time=9)
    history.ok("c1", "poll", [Poll(orders, ((3, 17),))], time=12)

`ok` happened, `fail` did not and never will, `info` nobody knows. Values are unique in a whole history: they, not
processes, tie a completion to its invocation, so a producer may have many sends open. A row of `f` = "txn" is one
transaction (ok = committed, fail = aborted); rows with other operations in them (send, poll) are the same without
atomicity. "assign" and "seek" rows make a reader's position unknown. "list_offsets" rows carry EndOffset operations.
A producer that is told nothing (acks=0) leaves its sends open.

Where transactions are checked closely: an invoked "txn" row has its sends, before the first of them; an invoked
"commit" row of the same process says that from now on they may be seen; "init" rows are asked for and answered with the
Epoch that the process got, and its transactions have it too. Readers of uncommitted records write "poll_uncommitted"
rows.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

Partition = tuple[str, int]
Value = int | str
Process = int | str
RowType = Literal["invoke", "ok", "fail", "info"]
REPOSITIONING = frozenset({"assign", "seek", "subscribe", "crash"})
UNCOMMITTED = "poll_uncommitted"


@dataclass(frozen=True, slots=True)
class Send:
    partition: Partition
    value: Value
    offset: int | None = None
    """As acknowledged; None where the cluster did not say."""


@dataclass(frozen=True, slots=True)
class Poll:
    partition: Partition
    records: tuple[tuple[int, Value], ...]
    """Offset and value, in the order they were handed over."""


@dataclass(frozen=True, slots=True)
class EndOffset:
    """ListOffsets(latest): one more than the last offset that readers may see."""

    partition: Partition
    offset: int | None = None


@dataclass(frozen=True, slots=True)
class Epoch:
    """Who a transactional producer is."""

    transactional_id: str
    producer_id: int
    epoch: int


Op = Send | Poll | EndOffset | Epoch


@dataclass(frozen=True, slots=True)
class Row:
    process: Process
    f: str
    type: RowType
    time: float
    ops: tuple[Op, ...]


@dataclass(slots=True)
class History:
    rows: list[Row] = field(default_factory=list)

    def invoke(self, process: Process, f: str, ops: Sequence[Op] = (), *, time: float) -> None:
        self.rows.append(Row(process, f, "invoke", time, tuple(ops)))

    def ok(self, process: Process, f: str, ops: Sequence[Op] = (), *, time: float) -> None:
        self.rows.append(Row(process, f, "ok", time, tuple(ops)))

    def fail(self, process: Process, f: str, ops: Sequence[Op] = (), *, time: float) -> None:
        self.rows.append(Row(process, f, "fail", time, tuple(ops)))

    def info(self, process: Process, f: str, ops: Sequence[Op] = (), *, time: float) -> None:
        self.rows.append(Row(process, f, "info", time, tuple(ops)))

    def extend(self, rows: Iterable[Row]) -> None:
        """Adds another process's rows; the whole is put in order of time."""
        self.rows.extend(rows)
        self.rows.sort(key=lambda row: row.time)

    def save(self, path: Path) -> None:
        with path.open("w") as file:
            file.writelines(json.dumps(_as_json(row), separators=(",", ":")) + "\n" for row in self.rows)

    @classmethod
    def load(cls, path: Path) -> History:
        return cls(list(_rows_of(path)))


def _rows_of(path: Path) -> Iterator[Row]:
    with path.open() as file:
        for line in file:
            process, f, kind, time, ops = json.loads(line)
            yield Row(process, f, kind, time, tuple(_op_of(op) for op in ops))


def _as_json(row: Row) -> list[Any]:
    return [row.process, row.f, row.type, row.time, [_op_as_json(op) for op in row.ops]]


def _op_as_json(op: Op) -> list[Any]:
    match op:
        case Send(partition, value, offset):
            return ["send", partition, value, offset]
        case Poll(partition, records):
            return ["poll", partition, records]
        case EndOffset(partition, offset):
            return ["end", partition, offset]
        case Epoch(transactional_id, producer_id, epoch):
            return ["epoch", transactional_id, producer_id, epoch]


def _op_of(fields: list[Any]) -> Op:
    kind, where, *rest = fields
    if kind == "epoch":
        return Epoch(where, *rest)
    partition = (where[0], where[1])
    match kind:
        case "send":
            return Send(partition, *rest)
        case "poll":
            return Poll(partition, tuple((offset, value) for offset, value in rest[0]))
        case "end":
            return EndOffset(partition, *rest)
    raise ValueError(f"no such operation in a history: {kind}")
