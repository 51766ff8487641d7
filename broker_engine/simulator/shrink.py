"""A list of faults that breaks a rule, made shorter as long as it still breaks it (delta debugging)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from broker_engine.simulator.schedule import Fault

RUNS_MAX = 80


def shrink(
    faults: Sequence[Fault], breaks: Callable[[Sequence[Fault]], bool], *, runs_max: int = RUNS_MAX
) -> tuple[Fault, ...]:
    """`breaks` runs with a part of the list, whose order stays. At most `runs_max` runs."""
    left, part_count, run_count = list(faults), 2, 0
    while left and run_count < runs_max:
        size = max(1, len(left) // part_count)
        for start in range(0, len(left), size):
            fewer = left[:start] + left[start + size :]
            run_count += 1
            if breaks(fewer):
                left, part_count = fewer, max(2, part_count - 1)
                break
            if run_count >= runs_max:
                break
        else:
            if size == 1:
                break
            part_count = min(len(left), part_count * 2)
    return tuple(left)
