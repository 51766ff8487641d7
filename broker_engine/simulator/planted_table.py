"""The table of planted bugs: after how many seeds each is found, and by which rule."""

from __future__ import annotations

import time

from broker_engine.simulator.campaign import tell
from broker_engine.simulator.planted import PLANTED, SEEDS_MAX, Planted, find

_ROW = "| {:<20} | {:>5} | {:>6} | {:>6} | {:<52} | {}"


def tell_planted(name: str) -> int:
    """All of them, or the one of this name. The exit code: 1 if one is not found."""
    chosen = [planted for planted in PLANTED if name in ("", planted.name)]
    tell(_ROW.format("bug", "seeds", "seed", "s", "found by", "what"))
    are_found = [_tell_one(planted) for planted in chosen]
    tell(f"planted bugs: {sum(are_found)} of {len(chosen)} found")
    return 0 if chosen and all(are_found) else 1


def _tell_one(planted: Planted) -> bool:
    started_s = time.monotonic()
    finding = find(planted, range(SEEDS_MAX))
    elapsed_s = f"{time.monotonic() - started_s:.0f}"
    if finding is None:
        tell(_ROW.format(planted.name, SEEDS_MAX, "-", elapsed_s, "not found", planted.what))
        return False
    rule = finding.report.violations[0].rule
    tell(_ROW.format(planted.name, finding.seed_count, finding.report.seed, elapsed_s, rule, planted.what))
    return True
