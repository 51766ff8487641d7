"""G1c and G0: transactions that depend on each other in a circle.

wr: a transaction read what another wrote. ww: a value follows another's in its partition. Kafka writes a transaction's
records as they come, so circles through ww edges are allowed in its model, and reported apart: G0 where there are none
but those.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from broker_engine.simulator.history.index import Index
from broker_engine.simulator.history.report import Anomaly, Kind
from broker_engine.simulator.history.rows import Poll, Row

Edges = dict[int, dict[int, None]]


def transaction_cycles(rows: Sequence[Row], index: Index) -> Iterator[Anomaly]:
    transactions = {number for number, row in enumerate(rows) if row.f == "txn" and row.type in ("ok", "info")}
    if not transactions:
        return
    edges = _read_edges(rows, index, transactions)
    yield from (_anomaly(Kind.G1C, cycle, rows) for cycle in components(edges))
    writes: Edges = {}
    _add_write_edges(writes, index, transactions)
    dirty = components(writes)
    yield from (_anomaly(Kind.G0, cycle, rows) for cycle in dirty)
    _add_write_edges(edges, index, transactions)
    known = {frozenset(cycle) for cycle in dirty}
    yield from (_anomaly(Kind.G1C_WW, cycle, rows) for cycle in components(edges) if frozenset(cycle) not in known)


def _anomaly(kind: Kind, cycle: Sequence[int], rows: Sequence[Row]) -> Anomaly:
    return Anomaly(kind, " -> ".join(f"row {number} ({rows[number].process})" for number in sorted(cycle)))


def _read_edges(rows: Sequence[Row], index: Index, transactions: set[int]) -> Edges:
    edges: Edges = {}
    for number in sorted(transactions):
        for op in rows[number].ops:
            for _, value in op.records if isinstance(op, Poll) else ():
                sent = index.sends.get(value)
                if sent is not None and sent.row in transactions and sent.row != number:
                    edges.setdefault(sent.row, {})[number] = None
    return edges


def _add_write_edges(edges: Edges, index: Index, transactions: set[int]) -> None:
    for at_offset in index.values.values():
        before: int | None = None
        for offset in sorted(at_offset):
            sent = index.sends.get(at_offset[offset])
            if sent is None or sent.row not in transactions:
                continue
            if before is not None and before != sent.row:
                edges.setdefault(before, {})[sent.row] = None
            before = sent.row


def components(edges: Edges) -> list[list[int]]:
    """Tarjan's strongly connected components of more than one node, without recursion."""
    order: dict[int, int] = {}
    lowest: dict[int, int] = {}
    stack: list[int] = []
    is_on_stack: set[int] = set()
    found: list[list[int]] = []
    for root in list(edges):
        work = [] if root in order else [(root, iter(edges.get(root, {})))]
        while work:
            node, successors = work[-1]
            if node not in order:
                order[node] = lowest[node] = len(order)
                stack.append(node)
                is_on_stack.add(node)
            for successor in successors:
                if successor not in order:
                    work.append((successor, iter(edges.get(successor, {}))))
                    break
                if successor in is_on_stack:
                    lowest[node] = min(lowest[node], order[successor])
            else:
                work.pop()
                if work:
                    parent = work[-1][0]
                    lowest[parent] = min(lowest[parent], lowest[node])
                if lowest[node] == order[node]:
                    found.append(_unwind(stack, is_on_stack, node))
    return [component for component in found if len(component) > 1]


def _unwind(stack: list[int], is_on_stack: set[int], node: int) -> list[int]:
    component: list[int] = []
    while True:
        member = stack.pop()
        is_on_stack.discard(member)
        component.append(member)
        if member == node:
            return component
