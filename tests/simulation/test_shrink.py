"""A long list of faults becomes the few that matter."""

from __future__ import annotations

from collections.abc import Sequence

from broker_engine.simulator.schedule import Fault
from broker_engine.simulator.shrink import shrink

FAULTS = [Fault(float(number), "kill", node=number) for number in range(40)]


def test_what_is_needed_stays_in_its_order() -> None:
    needed = [FAULTS[7], FAULTS[31]]

    def breaks(faults: Sequence[Fault]) -> bool:
        return all(fault in faults for fault in needed)

    assert list(shrink(FAULTS, breaks)) == needed


def test_what_needs_no_fault_at_all_ends_with_none() -> None:
    assert shrink(FAULTS, lambda faults: True) == ()


def test_there_is_an_end_to_trying() -> None:
    tried = []

    def breaks(faults: Sequence[Fault]) -> bool:
        tried.append(faults)
        return False

    assert list(shrink(FAULTS, breaks, runs_max=9)) == FAULTS
    assert len(tried) == 9
