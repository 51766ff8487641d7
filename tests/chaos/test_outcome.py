"""A programme that is played in parts: the tally adds up, and what was played is not played again."""

from __future__ import annotations

from pathlib import Path

from broker_engine.simulator.history import Anomaly, Kind, Report
from tests.chaos.act import Round, Verdict
from tests.chaos.outcome import Outcome


def verdict(*faults: str, sent: int = 100) -> Verdict:
    rounds = [Round(fault, "", 0.0, 1.0, None) for fault in faults]
    return Verdict(Report(sent=sent, acked=sent, read=sent), rounds, gaps_s={"kill": [0.5]})


def test_a_later_part_goes_on_where_an_earlier_one_ended(tmp_path: Path) -> None:
    tally, wanted = tmp_path / "tally.json", {"kill": 3, "stop": 1}
    first = Outcome.resume(tally, seed=1)
    first.add("main-1", verdict("kill", "kill"))
    first.save(tally)
    second = Outcome.resume(tally, seed=2)
    assert second.left_of(wanted) == {"kill": 1, "stop": 1}
    second.add("main-1", verdict("kill", "stop"))
    assert second.left_of(wanted) == {}
    assert second.closing_line().startswith("-- 4 rounds in 0 s in 2 parts: kill 3, stop 1; sent 200, acked 200")


def test_a_broken_promise_stays_in_the_tally(tmp_path: Path) -> None:
    tally = tmp_path / "tally.json"
    outcome, broken = Outcome(1), verdict("kill")
    broken.report.add(Anomaly(Kind.LOST_WRITE, "value 7"), is_allowed=False)
    outcome.add("main-1", broken)
    outcome.save(tally)
    resumed = Outcome.resume(tally, seed=2)
    assert resumed.lost == 1
    assert resumed.violations == outcome.violations
