"""check(history) -> Report: every anomaly of a history, those apart that its settings allow."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from broker_engine.simulator.history.cycles import transaction_cycles
from broker_engine.simulator.history.ends import end_order
from broker_engine.simulator.history.index import Index, index_of
from broker_engine.simulator.history.order import poll_order, send_order
from broker_engine.simulator.history.report import Allowed, Anomaly, Kind, Report
from broker_engine.simulator.history.rows import History, Row
from broker_engine.simulator.history.transactions import (
    intermediate_reads,
    lost_and_fractured,
    zombie_commits,
)
from broker_engine.simulator.history.values import (
    aborted_reads,
    duplicates,
    inconsistent_offsets,
    lost_and_unseen,
    precommitted_reads,
    unknown_values,
)

_LOSSES = frozenset({Kind.LOST_WRITE, Kind.UNSEEN, Kind.LOST_COMMIT, Kind.FRACTURED})
_REPEATS = frozenset({Kind.DUPLICATE, Kind.NONMONOTONIC_SEND})


def check(history: History, allowed: Allowed | None = None) -> Report:
    allowed = allowed or Allowed()
    index = index_of(history.rows, allowed)
    report = _counted(index)
    for anomaly in _anomalies(history.rows, index):
        report.add(anomaly, is_allowed=_is_allowed(anomaly, index))
        report.lost += anomaly.kind in _LOSSES
        report.duplicated += anomaly.kind == Kind.DUPLICATE
    return report


def _anomalies(rows: Sequence[Row], index: Index) -> Iterator[Anomaly]:
    yield from inconsistent_offsets(index)
    yield from duplicates(index)
    yield from lost_and_unseen(index)
    yield from aborted_reads(index)
    yield from unknown_values(index)
    yield from precommitted_reads(rows)
    yield from lost_and_fractured(rows, index)
    yield from intermediate_reads(rows)
    yield from zombie_commits(rows)
    yield from poll_order(rows, index)
    yield from send_order(index)
    yield from transaction_cycles(rows, index)
    yield from end_order(rows, index.allowed)


def _is_allowed(anomaly: Anomaly, index: Index) -> bool:
    is_shaken = anomaly.partition is not None and anomaly.partition[0] in index.allowed.shaken_topics
    if is_shaken or anomaly.kind in index.allowed.kinds:
        return True
    sent = None if anomaly.value is None else index.sends.get(anomaly.value)
    if sent is None:
        return False
    is_loss = anomaly.kind in _LOSSES and sent.process in index.allowed.may_lose
    is_repeat = anomaly.kind in _REPEATS and sent.process in index.allowed.may_duplicate
    # a record that vanished leaves its offset to a later one of the same process
    is_shifted = anomaly.kind == Kind.NONMONOTONIC_SEND and sent.process in index.allowed.may_lose
    return is_loss or is_repeat or is_shifted


def _counted(index: Index) -> Report:
    outcomes = [sent.outcome for sent in index.sends.values()]
    acked, failed = outcomes.count("ok"), outcomes.count("fail")
    unknown = len(outcomes) - acked - failed
    return Report(sent=len(outcomes), acked=acked, failed=failed, unknown=unknown, read=len(index.readers))
