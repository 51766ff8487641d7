"""Many seeds, on several processors: progress, what was found, and the closing line."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from broker_engine.simulator.run import RunReport, play, run_seed
from broker_engine.simulator.schedule import Fault, draw_faults
from broker_engine.simulator.shrink import shrink
from broker_engine.simulator.swarm import draw
from broker_engine.simulator.workers import reports, run_guarded

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
    cpu_s: float = 0.0
    failed_seeds: list[int] = field(default_factory=list)

    def add(self, report: RunReport) -> None:
        self.seed_count += 1
        self.event_count += report.event_count
        self.fault_count += report.fault_count
        self.acked_count += report.acked_count
        self.virtual_s += report.virtual_s
        self.cpu_s += report.cpu_s
        if not report.is_ok:
            self.failed_seeds.append(report.seed)

    def __str__(self) -> str:
        return (
            f"{self.seed_count} seeds, {self.event_count} events, {self.fault_count} faults, "
            f"{self.acked_count} records acked, {self.virtual_s:.0f} s of virtual time, "
            f"violations {len(self.failed_seeds)}"
        )


def run_many(seeds: Sequence[int], *, job_count: int = 1, chaos_s_min: float = 0.0) -> int:
    """The exit code."""
    started_s, told_s, totals = time.monotonic(), time.monotonic(), Totals()
    for report in reports(seeds, job_count, partial(run_seed, chaos_s_min=chaos_s_min)):
        totals.add(report)
        if not report.is_ok:
            tell_violation(report, is_shrunk=len(totals.failed_seeds) <= _SHRUNK_MAX, chaos_s_min=chaos_s_min)
        if time.monotonic() - told_s >= _PROGRESS_S:
            told_s = time.monotonic()
            tell(f"  {totals}, {_pace(totals.seed_count, len(seeds), told_s - started_s)}")
    if totals.failed_seeds:
        tell(f"failed seeds: {sorted(totals.failed_seeds)}")
    wall_s = time.monotonic() - started_s
    cpu_s = totals.cpu_s / max(1, totals.seed_count)
    tell(f"simulation: {totals}, wall time {wall_s:.0f} s, {cpu_s:.2f} CPU s a seed, commit {commit()}")
    return 1 if totals.failed_seeds else 0


def _pace(done_count: int, count: int, elapsed_s: float) -> str:
    per_s = done_count / max(elapsed_s, 0.001)
    left_s = (count - done_count) / per_s
    ends = time.strftime("%H:%M", time.localtime(time.time() + left_s))
    return f"{elapsed_s:.0f} s, {per_s:.1f} seeds/s, {left_s / 60:.0f} min left (until {ends})"


def tell_violation(report: RunReport, *, is_shrunk: bool, chaos_s_min: float = 0.0) -> None:
    tell(f"seed {report.seed} at commit {commit()}: {len(report.violations)} violations")
    for violation in report.violations[:5]:
        tell(f"  {violation}")
    for line in report.lines[-_TAIL_LINES:]:
        tell(f"    {line}")
    if is_shrunk and report.virtual_s > 0:  # the run came to its end
        faults = shrink_seed(report.seed, report.violations[0].rule, chaos_s_min=chaos_s_min)
        tell(f"  the shortest list of faults that still does it ({len(faults)}):")
        for fault in faults:
            tell(f"    {fault}")
    lifted = f" --chaos-s-min {chaos_s_min:g}" if chaos_s_min else ""
    tell(f"  again: python -m broker_engine.simulator --seed {report.seed}{lifted} --trace")


def shrink_seed(seed: int, rule: str, *, chaos_s_min: float = 0.0) -> tuple[Fault, ...]:
    swarm = draw(seed, chaos_s_min=chaos_s_min)

    def breaks(faults: Sequence[Fault]) -> bool:
        report = run_guarded(seed, lambda _: play(swarm, faults))  # fewer faults may break something else, even here
        return any(found.rule == rule for found in report.violations)

    return shrink(draw_faults(swarm), breaks)


def commit() -> str:
    command = ["git", "-C", str(Path(__file__).parent), "rev-parse", "--short", "HEAD"]
    found = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 - a fixed command
    return found.stdout.strip() or "unknown"


def tell(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()
