"""Many seeds, on several processors: progress, what was found, and the closing line."""

from __future__ import annotations

import multiprocessing
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from broker_engine.simulator.run import Run, RunReport, run_seed
from broker_engine.simulator.schedule import Fault, draw_faults
from broker_engine.simulator.shrink import shrink
from broker_engine.simulator.swarm import draw

_PROGRESS_S = 10.0
_TAIL_LINES = 30
_SHRUNK_MAX = 3
"""More findings than that are told without being made small: that takes its time."""


@dataclass(slots=True)
class Totals:
    seed_count: int = 0
    event_count: int = 0
    fault_count: int = 0
    acked_count: int = 0
    virtual_s: float = 0.0
    failed_seeds: list[int] = field(default_factory=list)

    def add(self, report: RunReport) -> None:
        self.seed_count += 1
        self.event_count += report.event_count
        self.fault_count += report.fault_count
        self.acked_count += report.acked_count
        self.virtual_s += report.virtual_s
        if not report.is_ok:
            self.failed_seeds.append(report.seed)

    def __str__(self) -> str:
        return (
            f"{self.seed_count} seeds, {self.event_count} events, {self.fault_count} faults, "
            f"{self.acked_count} records acked, {self.virtual_s:.0f} s of virtual time, "
            f"violations {len(self.failed_seeds)}"
        )


def run_many(seeds: Sequence[int], *, job_count: int = 1) -> int:
    """The exit code."""
    started_s, told_s, totals = time.monotonic(), time.monotonic(), Totals()
    for report in _reports(seeds, job_count):
        totals.add(report)
        if not report.is_ok:
            tell_violation(report, is_shrunk=len(totals.failed_seeds) <= _SHRUNK_MAX)
        if time.monotonic() - told_s >= _PROGRESS_S:
            told_s = time.monotonic()
            tell(f"  {totals}, {told_s - started_s:.0f} s")
    if totals.failed_seeds:
        tell(f"failed seeds: {sorted(totals.failed_seeds)}")
    tell(f"simulation: {totals}, wall time {time.monotonic() - started_s:.0f} s, commit {commit()}")
    return 1 if totals.failed_seeds else 0


def _reports(seeds: Sequence[int], job_count: int) -> Iterator[RunReport]:
    if job_count <= 1:
        yield from map(run_seed, seeds)
        return
    with multiprocessing.get_context("spawn").Pool(job_count, maxtasksperchild=200) as pool:
        yield from pool.imap_unordered(run_seed, seeds, chunksize=1)


def tell_violation(report: RunReport, *, is_shrunk: bool) -> None:
    tell(f"seed {report.seed} at commit {commit()}: {len(report.violations)} violations")
    for violation in report.violations[:5]:
        tell(f"  {violation}")
    for line in report.lines[-_TAIL_LINES:]:
        tell(f"    {line}")
    if is_shrunk:
        faults = shrink_seed(report.seed, report.violations[0].rule)
        tell(f"  the shortest list of faults that still does it ({len(faults)}):")
        for fault in faults:
            tell(f"    {fault}")
    tell(f"  again: python -m broker_engine.simulator --seed {report.seed} --trace")


def shrink_seed(seed: int, rule: str) -> tuple[Fault, ...]:
    swarm = draw(seed)

    def breaks(faults: Sequence[Fault]) -> bool:
        return any(found.rule == rule for found in Run(swarm, faults).go().violations)

    return shrink(draw_faults(swarm), breaks)


def commit() -> str:
    command = ["git", "-C", str(Path(__file__).parent), "rev-parse", "--short", "HEAD"]
    found = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 - a fixed command
    return found.stdout.strip() or "unknown"


def tell(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()
