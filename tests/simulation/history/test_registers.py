"""Wing and Gong's check: histories of one register that some order explains, and ones that none does."""

from __future__ import annotations

from random import Random

import pytest

from broker_engine.simulator.history import Call, Cas, Kind, Read, Write, find_nonlinearizable
from broker_engine.simulator.history.registers import first_stuck_window

LINEARIZABLE = {
    "one after the other": [Call("a", Write(1), 0, 1), Call("b", Read(1), 2, 3)],
    "a read beside a write sees either": [
        *(Call("a", Write(1), 0, 9), Call("b", Read(None), 1, 2), Call("b", Read(1), 3, 4)),
    ],
    "an unsure write took effect late": [
        *(Call("a", Write(1), 0, None), Call("b", Read(None), 5, 6), Call("b", Read(1), 7, 8)),
    ],
    "an unsure write never took effect": [Call("a", Write(1), 0, None), Call("b", Read(None), 5, 6)],
    "compare and set won, the other was refused": [
        *(Call("a", Write(1), 0, 1), Call("b", Cas(1, 2), 2, 5), Call("c", Cas(1, 3, is_done=False), 2, 6)),
        Call("a", Read(2), 7, 8),
    ],
}
NOT_LINEARIZABLE = {
    "an acknowledged commit was forgotten": [Call("a", Write(5), 0, 1), Call("b", Read(None), 2, 3)],
    "an older value came back": [
        *(Call("a", Write(1), 0, 1), Call("a", Write(2), 2, 3), Call("b", Read(2), 4, 5), Call("b", Read(1), 6, 7)),
    ],
    "a read beside the write went back": [
        *(Call("a", Write(1), 0, 9), Call("b", Read(1), 1, 2), Call("c", Read(None), 3, 4)),
    ],
    "both compare and sets won": [
        *(Call("a", Write(1), 0, 1), Call("b", Cas(1, 2), 2, 5), Call("c", Cas(1, 3), 2, 6)),
    ],
    "an unsure write took effect twice": [
        *(Call("a", Write(1), 0, None), Call("b", Read(1), 2, 3), Call("b", Write(2), 4, 5), Call("b", Read(1), 6, 7)),
    ],
    "an unsure write was seen before it was asked for": [Call("b", Read(1), 0, 1), Call("a", Write(1), 2, None)],
}


@pytest.mark.parametrize("calls", LINEARIZABLE.values(), ids=LINEARIZABLE.keys())
def test_what_some_order_explains_passes(calls: list[Call]) -> None:
    assert find_nonlinearizable({"offset": calls}) == []


@pytest.mark.parametrize("calls", NOT_LINEARIZABLE.values(), ids=NOT_LINEARIZABLE.keys())
def test_what_no_order_explains_is_found(calls: list[Call]) -> None:
    (anomaly,) = find_nonlinearizable({"offset": calls})
    assert anomaly.kind == Kind.NOT_LINEARIZABLE


def test_registers_are_judged_each_by_itself() -> None:
    good, bad = LINEARIZABLE["one after the other"], NOT_LINEARIZABLE["an older value came back"]
    (anomaly,) = find_nonlinearizable({("g", "orders-0"): good, ("g", "orders-1"): bad})
    assert "orders-1" in anomaly.detail


@pytest.mark.parametrize("seed", range(10))
def test_a_long_history_of_a_real_register_passes_and_a_stale_read_in_it_does_not(seed: int) -> None:
    calls = _life_of_a_register(Random(seed))
    assert first_stuck_window(calls, None) is None
    stale = Call("late", Read(-1), 10_000_000, 10_000_001)
    assert first_stuck_window([*calls, stale], None) == [stale]


def _life_of_a_register(random: Random) -> list[Call]:
    """500 calls of three processes that overlap; each takes effect at a moment of its own."""
    moments = sorted((number * 10 + random.random() * 30, number) for number in range(500))
    value, calls = None, []
    for moment, number in moments:
        begin, end = moment - random.random() * 20, moment + random.random() * 20
        if random.random() < 0.5:
            value = number
            calls.append(Call(number % 3, Write(number), begin, None if random.random() < 0.05 else end))
        else:
            calls.append(Call(number % 3, Read(value), begin, end))
    return calls
