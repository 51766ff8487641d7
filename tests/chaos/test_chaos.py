"""A minute of process chaos inside `make test`; `make chaos` and `make chaos-long` are the same with more time."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from random import Random

import pytest

from tests.chaos.outcome import Outcome
from tests.chaos.programme import SHORT, Programme, deal

SEED = 20_261_117
ONE_BROKER = {"kill": 4, "term": 1, "whole": 1}
A_MINUTE = {"kill": 5, "stop": 1, "whole": 1, "term": 1, "cut": 1, "reset": 1, "client": 2, "zombie": 1}
SECONDS = 40.0
"""After one round of each kind none begins after this time; the last one, the final polls and the check take the rest
of a minute."""


def check(outcome: Outcome, planned: Iterable[str]) -> None:
    print("\n".join(outcome.closing_lines()))
    assert not outcome.violations, "\n".join(outcome.violations[:20])
    assert outcome.acked > 0
    assert outcome.left_of(dict.fromkeys(planned, 1)) == {}, "every kind of fault that is planned has had its round"
    kinds = ("commits by the classic protocol acknowledged", "commits by the new protocol acknowledged")
    assert all(outcome.figures[kind] > 0 for kind in (*kinds, "transactions committed", "producer epochs given"))


@pytest.mark.parametrize("seed", range(20))
def test_each_kind_of_fault_has_its_first_round_before_any_has_its_second(seed: int) -> None:
    names = [fault.name for fault in deal(A_MINUTE, 3, Random(seed))]
    assert set(names[: len(A_MINUTE)]) == set(A_MINUTE)
    assert {name: names.count(name) for name in A_MINUTE} == A_MINUTE


def test_faults_that_need_more_brokers_are_not_dealt() -> None:
    assert {fault.name for fault in deal(SHORT, 1, Random(1))}.isdisjoint({"stop", "cut", "slow", "wipe"})


@pytest.mark.timeout(180)
def test_one_broker_keeps_what_it_acknowledged_over_kills(tmp_path: Path) -> None:
    programme = Programme(tmp_path, SEED, print, 1, ONE_BROKER, seconds=10.0, is_each_played=True)
    check(programme.play(), ONE_BROKER)


@pytest.mark.timeout(290)
def test_three_brokers_keep_what_they_acknowledged_over_a_minute_of_faults(tmp_path: Path) -> None:
    programme = Programme(tmp_path, SEED, print, 3, A_MINUTE, seconds=SECONDS, is_each_played=True)
    check(programme.play(), A_MINUTE)


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_three_brokers_keep_what_they_acknowledged_over_every_fault(tmp_path: Path) -> None:
    outcome = Programme(tmp_path, SEED, print, 3, {**SHORT, "full": 2, "clock": 2}).play()
    check(outcome, [*SHORT, *([] if outcome.left_out else ["full", "clock"])])
