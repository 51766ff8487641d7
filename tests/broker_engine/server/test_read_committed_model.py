"""Invariant 39 against a model: a read_committed reader sees the committed records, all of them, and nothing else.

Random transactions of several producers over small segments; stops, kills, power cuts, lost caches and retention in
between; fetches of any size. The model is a list of what was appended; it is cut where the log is.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from hypothesis import given, settings
from hypothesis import strategies as st

from broker_engine.log.config import LogConfig
from tests.broker_engine.server.one_replica import OneReplica

PRODUCERS = st.integers(1, 4)
STEPS = st.one_of(
    st.tuples(st.just("send"), PRODUCERS, st.integers(1, 3)),
    st.tuples(st.just("send"), PRODUCERS, st.integers(1, 3)),
    st.tuples(st.just("commit"), PRODUCERS, st.just(0)),
    st.tuples(st.just("abort"), PRODUCERS, st.just(0)),
    st.tuples(st.just("plain"), st.integers(10, 11), st.integers(1, 2)),
    st.tuples(st.sampled_from(["flush", "stop", "kill", "power", "caches", "retention"]), st.just(0), st.just(0)),
)


@dataclass(slots=True)
class Entry:
    offset: int
    producer_id: int
    values: list[bytes] = field(default_factory=list)
    """Empty: a marker."""
    is_commit: bool = False
    is_plain: bool = False


class Model:
    def __init__(self) -> None:
        self.entries: list[Entry] = []

    def cut(self, end_offset: int) -> None:
        self.entries = [entry for entry in self.entries if entry.offset < end_offset]

    def committed(self, start_offset: int) -> tuple[list[bytes], int | None]:
        """The committed values from an offset on, up to where the oldest open transaction began."""
        outcomes, open_since = self._outcomes()
        first_open = min(open_since.values(), default=None)
        values = []
        for entry in self.entries:
            is_stable = first_open is None or entry.offset < first_open
            if is_stable and (entry.is_plain or outcomes.get(entry.offset)):
                values += entry.values[max(0, start_offset - entry.offset) :]
        return values, first_open

    def _outcomes(self) -> tuple[dict[int, bool], dict[int, int]]:
        """By batch whether its transaction committed; by producer where its open one began."""
        outcomes: dict[int, bool] = {}
        pending: dict[int, list[int]] = {}
        for entry in self.entries:
            if entry.values and not entry.is_plain:
                pending.setdefault(entry.producer_id, []).append(entry.offset)
            elif not entry.values:
                outcomes |= dict.fromkeys(pending.pop(entry.producer_id, []), entry.is_commit)
        return outcomes, {producer_id: offsets[0] for producer_id, offsets in pending.items()}


class Run:
    def __init__(self) -> None:
        self.replica = OneReplica(LogConfig(segment_bytes=500, index_interval_bytes=120, retention_bytes=1500))
        self.model = Model()
        self._number = 0

    def play(self, step: str, producer_id: int, count: int) -> None:
        replica = self.replica
        match step:
            case "send" | "plain":
                self._send(producer_id, count, is_plain=step == "plain")
            case "commit" | "abort":
                is_commit = step == "commit"
                offset = replica.end(producer_id, is_commit=is_commit)
                self.model.entries.append(Entry(offset, producer_id, is_commit=is_commit))
            case "flush":
                replica.flush()
            case "stop":
                replica.stop_and_start()
            case "kill":
                replica.kill_and_start()
            case "power":
                replica.lose_power_and_start()
                self.model.cut(replica.local.log.log_end_offset)
            case "caches":
                replica.stop_and_start(are_caches_kept=False)
            case "retention":
                for segment in replica.local.apply_retention(replica.clock.now_ms()):
                    segment.remove()

    def _send(self, producer_id: int, count: int, *, is_plain: bool) -> None:
        values = [b"%06d" % (self._number + number) for number in range(count)]
        self._number += count
        offset = self.replica.send(producer_id, *values, is_plain=is_plain)
        self.model.entries.append(Entry(offset, producer_id, values, is_plain=is_plain))

    def check(self, bytes_max: int) -> None:
        self.replica.flush()
        local = self.replica.local
        expected, first_open = self.model.committed(local.log_start_offset)
        assert self.replica.committed_values(bytes_max=bytes_max) == expected
        assert local.last_stable_offset == (local.high_watermark if first_open is None else first_open)


@given(st.lists(STEPS, max_size=40), st.sampled_from([1, 200, 900, 1 << 20]))
@settings(max_examples=150, deadline=None)
def test_a_reader_sees_the_committed_records_and_nothing_else(
    steps: list[tuple[str, int, int]], bytes_max: int
) -> None:
    run = Run()
    for number, step in enumerate(steps):
        run.play(*step)
        if number % 5 == 0:
            run.check(bytes_max)
    run.check(bytes_max)


@given(st.lists(STEPS, max_size=30), st.integers(0, 60))
@settings(max_examples=60, deadline=None)
def test_it_sees_them_from_wherever_it_begins(steps: list[tuple[str, int, int]], start: int) -> None:
    run = Run()
    for step in steps:
        run.play(*step)
    run.replica.flush()
    local = run.replica.local
    start_offset = min(max(start, local.log_start_offset), local.last_stable_offset)
    values, _ = run.model.committed(local.log_start_offset)
    seen = run.replica.committed_values(start_offset, bytes_max=300)
    assert seen == values[len(values) - len(seen) :]
    records = run.replica.committed_records(bytes_max=300)
    assert len(seen) == sum(record.offset >= start_offset for record in records)
