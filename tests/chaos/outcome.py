"""What all acts together gave; kept in a file, a later run goes on where an earlier one ended."""

from __future__ import annotations

import json
import statistics
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.chaos.act import Verdict
from tests.chaos.failover import percentile


@dataclass(slots=True)
class Outcome:
    seed: int
    rounds: Counter[str] = field(default_factory=Counter)
    sent: int = 0
    acked: int = 0
    read: int = 0
    lost: int = 0
    duplicated: int = 0
    allowed: Counter[str] = field(default_factory=Counter)
    figures: Counter[str] = field(default_factory=Counter)
    """What groups and transactions did: commits, transactions committed and aborted, rebalances."""
    violations: list[str] = field(default_factory=list)
    gaps_s: dict[str, list[float]] = field(default_factory=dict)
    left_out: list[str] = field(default_factory=list)
    seconds_before: float = 0.0
    """Of earlier parts."""
    part_count: int = 1
    started: float = field(default_factory=time.monotonic)

    def add(self, name: str, verdict: Verdict) -> None:
        report = verdict.report
        self.rounds.update(part.fault for part in verdict.rounds)
        self.sent, self.acked, self.read = self.sent + report.sent, self.acked + report.acked, self.read + report.read
        self.allowed.update(str(anomaly.kind) for anomaly in report.allowed)
        self.figures.update(verdict.figures)
        broken = Counter(str(anomaly.kind) for anomaly in report.violations)
        self.lost += broken["lost-write"] + broken["unseen"]
        self.duplicated += broken["duplicate"]
        self.violations += [f"{name}: {text}" for text in (*verdict.problems, *map(str, report.violations))]
        for fault, gaps in verdict.gaps_s.items():
            self.gaps_s.setdefault(fault, []).extend(gaps)

    @property
    def seconds(self) -> float:
        return self.seconds_before + time.monotonic() - self.started

    def left_of(self, counts: Mapping[str, int]) -> dict[str, int]:
        """Rounds that are still to be played of those that were asked for."""
        return {name: left for name, count in counts.items() if (left := count - self.rounds[name]) > 0}

    # -- the file

    def save(self, path: Path) -> None:
        """Whole or not at all: a run may be ended at any time."""
        fields: dict[str, Any] = {name: getattr(self, name) for name in _SAVED}
        temporary = path.with_suffix(".new")
        temporary.write_text(json.dumps({**fields, "seconds_before": self.seconds}))
        temporary.rename(path)

    @classmethod
    def resume(cls, path: Path, seed: int) -> Outcome:
        if not path.exists():
            return cls(seed)
        fields = json.loads(path.read_text())
        for name in ("rounds", "allowed", "figures"):
            fields[name] = Counter(fields[name])
        return cls(seed, **{**fields, "part_count": fields["part_count"] + 1})

    # -- what is said at the end

    def closing_lines(self) -> list[str]:
        allowed = ", ".join(f"{kind} {count}" for kind, count in sorted(self.allowed.items())) or "none"
        lines = [
            f"-- what acks=1 and retries without idempotence do not promise: {allowed}",
            "-- longest time without an acknowledgement, p50 / p95 / longest s: " + ", ".join(self._gap_texts()),
        ]
        if self.figures:
            lines.append("-- groups and transactions: " + _listed(self.figures))
        return [*lines, *(f"-- left out: {text}" for text in self.left_out), self.closing_line()]

    def closing_line(self) -> str:
        parts = f" in {self.part_count} parts" if self.part_count > 1 else ""
        return (
            f"-- {self.rounds.total()} rounds in {self.seconds:.0f} s{parts}: {_listed(self.rounds)}; "
            f"sent {self.sent:,}, acked {self.acked:,}, read {self.read:,}; of what was promised: lost {self.lost}, "
            f"duplicated {self.duplicated}, anomalies and other problems {len(self.violations)}"
        )

    def _gap_texts(self) -> Iterator[str]:
        for fault, gaps in sorted(self.gaps_s.items()):
            yield f"{fault} {statistics.median(gaps):.1f} / {percentile(gaps, 0.95):.1f} / {max(gaps):.1f}"


_SAVED = (
    *("rounds", "sent", "acked", "read", "lost", "duplicated", "allowed", "figures", "violations", "gaps_s"),
    *("left_out", "part_count"),
)


def _listed(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {count:,}" for name, count in sorted(counts.items())) or "none"
