"""Medians over rounds, ratios to Kafka, and the verdict of each metric."""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from dataclasses import dataclass

from benchmarks.bars import Bar
from benchmarks.rows import Row
from benchmarks.runner import Measurements

LESS_IS_BETTER = ("CPU", " ms", "RSS", "start s", "create s", "disk read")


@dataclass(frozen=True, slots=True)
class Line:
    row: Row
    metric: str
    kafka: float | None
    ours: float | None
    bar: Bar | None

    @property
    def ratio(self) -> float | None:
        if self.kafka is None or self.ours is None or self.kafka <= 0:
            return None
        return self.ours / self.kafka

    @property
    def verdict(self) -> str:
        if self.ours is None:
            return "missing"
        is_met = None if self.bar is None else self.bar.is_met(self.ours, self.ratio)
        return {None: "", True: "ok", False: "SHORT"}[is_met]

    @property
    def is_less_better(self) -> bool:
        return any(mark in self.metric for mark in LESS_IS_BETTER)

    def cells(self) -> tuple[str, ...]:
        ratio = "" if self.ratio is None else f"{self.ratio:.2f}x"
        bar = "" if self.bar is None else str(self.bar)
        return self.row.title, self.metric, _number(self.kafka), _number(self.ours), ratio, bar, self.verdict


HEADINGS = ("row", "metric", "Kafka", "Highwater", "ratio", "bar", "")


def _number(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def lines_of(measurements: Measurements) -> list[Line]:
    return [line for row in measurements.rows.values() for line in _lines_of_row(measurements, row)]


def _lines_of_row(measurements: Measurements, row: Row) -> Iterator[Line]:
    sides = measurements.rounds[row.key]
    names = dict.fromkeys(name for rounds in sides.values() for metrics in rounds for name in metrics)
    for name in names or row.bars:
        values = {side: [metrics[name] for metrics in rounds if name in metrics] for side, rounds in sides.items()}
        yield Line(row, name, _median(values.get("kafka")), _median(values.get("highwater")), row.bars.get(name))


def _median(values: list[float] | None) -> float | None:
    return statistics.median(values) if values else None
