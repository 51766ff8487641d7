"""A row of the table: a name, a measurement of one broker, and the bar of each metric."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from benchmarks.bars import Bar
from benchmarks.brokers import Broker
from benchmarks.brokers.broker import NO_CONFIGS

Metrics = dict[str, float]
BOTH = ("kafka", "highwater")


@dataclass(slots=True)
class Stage:
    """Where a row is measured: a running broker, and how much work a full-size row is scaled to."""

    broker: Broker
    scale: float
    _numbers: Iterator[int] = field(default_factory=itertools.count)

    def sized(self, full: int, minimum: int = 1) -> int:
        return max(minimum, int(full * self.scale))

    @contextmanager
    def topic(
        self, partition_count: int = 1, durability: str = "page-cache", configs: Mapping[str, str] = NO_CONFIGS
    ) -> Iterator[str]:
        """A topic for one row, gone afterwards: no row meets the data of another."""
        name = f"bench-{next(self._numbers)}"
        self.broker.create_topic(name, partition_count, durability=durability, configs=configs)
        yield name
        self.broker.delete_topic(name)


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    key: str
    title: str
    measure: Callable[[Stage], Metrics]
    bars: Mapping[str, Bar] = field(default_factory=dict)
    is_quick: bool = False
    is_client_bound: bool = False
    """The client uses most of a core: throughput says as much about it as about the broker; read the CPU."""
    sides: tuple[str, ...] = BOTH
    quick_sides: tuple[str, ...] = BOTH


@dataclass(frozen=True, slots=True)
class Scenario:
    key: str
    title: str
    rows: tuple[Row, ...]
    is_tls: bool = False
    is_cluster: bool = False
    """Three brokers instead of one."""
    rounds_max: int = 1_000
