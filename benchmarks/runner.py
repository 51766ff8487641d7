"""Runs scenarios in interleaved rounds (Kafka, us, Kafka, us ...), and says on the way what came out."""

from __future__ import annotations

import os
import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from benchmarks import process
from benchmarks.bars import at_most
from benchmarks.brokers import CLUSTERS, SIDES, Broker
from benchmarks.loads import child, librdkafka, raw_produce
from benchmarks.rows import SCENARIOS, Row, Scenario, cluster
from benchmarks.rows.row import Metrics, Stage

IDLE_SETTLE_S = 2.0


@dataclass(frozen=True, slots=True)
class Options:
    data_dir: Path
    rounds: int
    scale: float
    sides: tuple[str, ...]
    keys: frozenset[str] = frozenset()
    is_quick: bool = False


def _nothing(stage: Stage) -> Metrics:
    raise AssertionError("measured by the runner itself")


PROCESS_ROW = Row(
    key="process",
    title="start to first metadata answer; memory idle, and after all rows",
    measure=_nothing,
    bars={"start s": at_most(0.25), "idle RSS MB": at_most(0.25), "RSS MB after": at_most(0.25)},
    is_quick=True,
)


@dataclass(slots=True)
class Measurements:
    """What every row gave: side -> one dictionary of metrics a round; and what went wrong."""

    rows: dict[str, Row] = field(default_factory=dict)
    rounds: dict[str, dict[str, list[Metrics]]] = field(default_factory=lambda: defaultdict(lambda: defaultdict(list)))
    failures: list[str] = field(default_factory=list)

    def add(self, row: Row, side: str, metrics: Metrics) -> None:
        self.rows[row.key] = row
        self.rounds[row.key][side].append(metrics)
        figures = "  ".join(f"{name} {value:,.4g}" for name, value in metrics.items())
        print(f"   {side:<10} {row.key:<38} {figures}", flush=True)

    def fail(self, row: Row, side: str, error: Exception) -> None:
        self.rows[row.key] = row
        self.failures.append(f"{row.key} on {side}: {error}")
        print(f"   {side:<10} {row.key:<38} FAILED: {error}", flush=True)


def chosen_scenarios(options: Options) -> list[Scenario]:
    chosen = (replace(scenario, rows=_chosen_rows(scenario.rows, options)) for scenario in SCENARIOS)
    has_process_row = PROCESS_ROW.key in options.keys
    return [scenario for scenario in chosen if scenario.rows or (has_process_row and scenario.key == "load")]


def _chosen_rows(rows: Sequence[Row], options: Options) -> tuple[Row, ...]:
    """`--rows` names rows, or the beginnings of their names."""
    if options.keys:
        return tuple(row for row in rows if any(_is_named(row, key) for key in options.keys))
    return tuple(row for row in rows if row.is_quick or not options.is_quick)


def _is_named(row: Row, key: str) -> bool:
    """`partitions-1000` is a row of its own, though also the beginning of another."""
    is_whole_name = any(other.key == key for scenario in SCENARIOS for other in scenario.rows)
    return row.key == key or (not is_whole_name and row.key.startswith(key))


def run(options: Options) -> Measurements:
    measurements = Measurements()
    for scenario in chosen_scenarios(options):
        rounds = min(options.rounds, scenario.rounds_max)
        for number in range(1, rounds + 1):
            for side in options.sides:
                rows = [row for row in scenario.rows if side in _sides_of(row, options)]
                if rows or not scenario.rows:
                    print(f"-- {scenario.title}: round {number} of {rounds}, {side}", flush=True)
                    _run_side(measurements, options, scenario, rows, side)
    return measurements


def _sides_of(row: Row, options: Options) -> tuple[str, ...]:
    return row.quick_sides if options.is_quick and not options.keys else row.sides


def _run_side(measurements: Measurements, options: Options, scenario: Scenario, rows: Sequence[Row], side: str) -> None:
    sides = CLUSTERS if scenario.is_cluster else SIDES
    with sides[side](options.data_dir / side, is_tls=scenario.is_tls) as broker:
        start: Metrics = {"start s": broker.start_s}
        stage = Stage(broker, options.scale)
        if scenario.key == "load":
            time.sleep(IDLE_SETTLE_S)
            start["idle RSS MB"] = broker.rss_bytes / 1e6
            _warm_up(stage)
        if scenario.is_cluster:
            cluster.warm_up(stage, rows)
        for row in rows:
            _run_row(measurements, stage, row)
        if scenario.key == "load":
            measurements.add(PROCESS_ROW, side, start | _memory(broker))
    os.sync()


def _run_row(measurements: Measurements, stage: Stage, row: Row) -> None:
    os.sync()  # no row pays for the dirty pages of the one before
    try:
        measurements.add(row, stage.broker.side, row.measure(stage))
    except Exception as error:
        measurements.fail(row, stage.broker.side, error)
        stage.broker.pid  # noqa: B018 - a row that ended its broker leaves nothing for the next ones


def _warm_up(stage: Stage) -> None:
    """A JVM is slow until it has compiled what it runs often; ours has nothing to warm, and gets the same."""
    with stage.topic(16) as topic:
        child.run(
            raw_produce.one_record_requests, stage.broker.port, stage.broker.pid, topic, connection_count=16,
            partition_count=16, record_bytes=100, request_count=stage.sized(80_000, 1_000),
        )  # fmt: skip
        child.run(
            librdkafka.produce, stage.broker.bootstrap, stage.broker.pid, topic, record_bytes=1_000,
            total_bytes=stage.sized(200_000_000, 1_000_000),
        )  # fmt: skip


def _memory(broker: Broker) -> Metrics:
    return {"RSS MB after": broker.rss_bytes / 1e6, "highest RSS MB": process.rss_bytes_max(broker.pid) / 1e6}
