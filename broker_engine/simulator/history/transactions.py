"""Anomalies of transactions as wholes: lost, seen in part, seen too early, committed by a producer that was fenced."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

from broker_engine.simulator.history.index import Index
from broker_engine.simulator.history.report import Anomaly, Kind
from broker_engine.simulator.history.rows import UNCOMMITTED, Epoch, Poll, Process, Row, Send, Value


def lost_and_fractured(rows: Sequence[Row], index: Index) -> Iterator[Anomaly]:
    """Final polls to the end are needed, as for single values. Of an unsure one all is read, or nothing."""
    values: defaultdict[int, list[Value]] = defaultdict(list)
    for value, sent in index.sends.items():
        if sent.is_in_transaction and sent.outcome != "fail":
            values[sent.row].append(value)
    for number, sent_values in values.items():
        missing = [value for value in sent_values if value not in index.readers]
        row, some = rows[number], sent_values[0]
        if not missing or (len(missing) == len(sent_values) and row.type != "ok"):
            continue
        where = index.sends[missing[0]].partition
        if len(missing) == len(sent_values):
            detail = f"the transaction of {row.process} in row {number} with value {some} was never read"
            yield Anomaly(Kind.LOST_COMMIT, detail, where, missing[0])
        else:
            detail = f"of the transaction of {row.process} in row {number} all was read but {missing}"
            yield Anomaly(Kind.FRACTURED, detail, where, missing[0])


def intermediate_reads(rows: Sequence[Row]) -> Iterator[Anomaly]:
    open_values: dict[Value, Process] = {}
    by_process: dict[Process, list[Value]] = {}
    for number, row in enumerate(rows):
        if row.f in ("txn", "commit"):
            for value in by_process.pop(row.process, ()):
                open_values.pop(value, None)
        if row.f == "txn" and row.type == "invoke":
            sent = [op.value for op in row.ops if isinstance(op, Send)]
            by_process[row.process] = sent
            open_values.update(dict.fromkeys(sent, row.process))
        elif row.f != UNCOMMITTED and row.type != "invoke":
            yield from _too_early(number, row, open_values)


def _too_early(number: int, row: Row, open_values: dict[Value, Process]) -> Iterator[Anomaly]:
    for op in row.ops:
        if isinstance(op, Poll):
            for offset, value in op.records:
                if value in open_values:
                    writer = open_values[value]
                    detail = f"{row.process} read value {value} at {offset} in row {number}, {writer} is not done"
                    yield Anomaly(Kind.G1B, detail, op.partition, value)


def zombie_commits(rows: Sequence[Row]) -> Iterator[Anomaly]:
    newest: dict[tuple[str, int], tuple[int, Process]] = {}
    """By id and producer id: the highest epoch that somebody was given."""
    at_invoke: dict[tuple[str, Process], dict[tuple[str, int], tuple[int, Process]]] = {}
    """Answers may be late: what counts is what was there when they were asked for."""
    for number, row in enumerate(rows):
        if row.f in ("commit", "init") and row.type == "invoke":
            at_invoke[row.f, row.process] = dict(newest)
        for op in row.ops:
            if not isinstance(op, Epoch) or row.type != "ok":
                continue
            key = (op.transactional_id, op.producer_id)
            if row.f == "init":
                epoch, owner = newest.get(key, (-1, row.process))
                before = at_invoke.get(("init", row.process), {}).get(key, (-1, row.process))[0]
                if op.epoch < before or (op.epoch == epoch and owner != row.process):
                    yield _zombie(number, row, op, f"was given epoch {op.epoch}, {owner} has {epoch}")
                newest[key] = max((op.epoch, row.process), (epoch, owner), key=lambda known: known[0])
            elif row.f == "txn":
                epoch, owner = at_invoke.get(("commit", row.process), {}).get(key, (-1, row.process))
                if op.epoch < epoch:
                    yield _zombie(number, row, op, f"committed in epoch {op.epoch}, {owner} had {epoch} by then")


def _zombie(number: int, row: Row, op: Epoch, what: str) -> Anomaly:
    return Anomaly(Kind.ZOMBIE_COMMIT, f"{row.process} {what} of {op.transactional_id!r} (row {number})")
