"""A minute of process chaos inside `make test`; `make chaos` and `make chaos-long` are the same with more time."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.chaos.programme import Outcome, Programme

SEED = 20_261_117
ONE_BROKER = {"kill": 5, "term": 1, "stop": 1, "whole": 1}
A_MINUTE_S = 40.0
"""No round begins after this time; the last one, the final polls and the check take the rest of a minute."""


def check(outcome: Outcome) -> None:
    print("\n".join(outcome.closing_lines()))
    assert not outcome.violations, "\n".join(outcome.violations[:20])
    assert outcome.acked > 0
    assert outcome.read >= outcome.acked - sum(outcome.allowed.values())


@pytest.mark.timeout(180)
def test_one_broker_keeps_what_it_acknowledged_over_kills(tmp_path: Path) -> None:
    check(Programme(tmp_path, SEED, print, 1, ONE_BROKER, seconds=15.0).play())
