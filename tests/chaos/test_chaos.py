"""A minute of process chaos inside `make test`; `make chaos` and `make chaos-long` are the same with more time."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.chaos.outcome import Outcome
from tests.chaos.programme import SHORT, Programme

SEED = 20_261_117
ONE_BROKER = {"kill": 4, "term": 1, "whole": 1}
A_MINUTE = {"kill": 6, "whole": 1, "term": 1, "cut": 1, "reset": 1, "client": 2, "zombie": 1}
SECONDS = 40.0
"""No round begins after this time; the last one, the final polls and the check take the rest of a minute."""


def check(outcome: Outcome) -> None:
    print("\n".join(outcome.closing_lines()))
    assert not outcome.violations, "\n".join(outcome.violations[:20])
    assert outcome.acked > 0
    assert outcome.rounds.total() > 0
    kinds = ("commits by the classic protocol acknowledged", "commits by the new protocol acknowledged")
    assert all(outcome.figures[kind] > 0 for kind in (*kinds, "transactions committed", "producer epochs given"))


@pytest.mark.timeout(180)
def test_one_broker_keeps_what_it_acknowledged_over_kills(tmp_path: Path) -> None:
    check(Programme(tmp_path, SEED, print, 1, ONE_BROKER, seconds=10.0).play())


@pytest.mark.timeout(290)
def test_three_brokers_keep_what_they_acknowledged_over_a_minute_of_faults(tmp_path: Path) -> None:
    check(Programme(tmp_path, SEED, print, 3, A_MINUTE, seconds=SECONDS).play())


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_three_brokers_keep_what_they_acknowledged_over_every_fault(tmp_path: Path) -> None:
    check(Programme(tmp_path, SEED, print, 3, {**SHORT, "full": 2, "clock": 2}).play())
