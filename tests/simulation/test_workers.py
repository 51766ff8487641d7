"""Many seeds on several processes: each is reported once, whatever happens to the process that ran it."""

from __future__ import annotations

import os

from broker_engine.simulator.run import RunReport
from broker_engine.simulator.workers import reports, run_guarded

BROKEN, DEADLY = 3, 5


def run(seed: int) -> RunReport:
    if seed == BROKEN:
        raise KeyError("a bug of the simulator")
    if seed == DEADLY:
        os._exit(9)
    return RunReport(seed, lines=["much"], acked_count=seed)


def test_a_crash_costs_its_own_seed_only() -> None:
    found = {report.seed: report for report in reports(range(12), 2, run)}
    assert sorted(found) == list(range(12))
    assert sorted(seed for seed, report in found.items() if not report.is_ok) == [BROKEN, DEADLY]
    assert "a bug of the simulator" in found[BROKEN].violations[0].text
    assert "exit code 9" in found[DEADLY].violations[0].text


def test_what_went_well_is_not_told_at_length() -> None:
    report = run_guarded(1, run)
    assert report.lines == []
    assert report.acked_count == 1
