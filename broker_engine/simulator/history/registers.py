"""Wing and Gong's linearizability check for one register: a group's offset, a topic that is there or not, a config.

A call takes effect at one moment between its invocation and its return. The history is cut where no call is open, so
that each search is small; what a search hands on is every state that it may have ended in. A call without a return
(`info`) may take effect at any later moment, or never; it is carried along until it is needed.

    calls = [Call("c1", Write(5), 0, 3), Call("c2", Read(5), 4, 6), Call("c1", Write(9), 5, None)]
    find_nonlinearizable({("group", "orders-0"): calls}, initial=None)      # [] = fine
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from broker_engine.simulator.history.report import Anomaly, Kind
from broker_engine.simulator.history.rows import Process


@dataclass(frozen=True, slots=True)
class Write:
    value: Hashable


@dataclass(frozen=True, slots=True)
class Read:
    value: Hashable


@dataclass(frozen=True, slots=True)
class Cas:
    """Sets `value` where `expected` was; a refused one (`is_done` False) saw something else."""

    expected: Hashable
    value: Hashable
    is_done: bool = True


Action = Write | Read | Cas


@dataclass(frozen=True, slots=True)
class Call:
    process: Process
    action: Action
    invoked: float
    returned: float | None
    """None: nobody was told (`info`). Failed calls do not belong into a history of calls."""


World = tuple[Hashable, frozenset[int]]
"""The register's value, and which open calls have not taken effect yet."""


def find_nonlinearizable(registers: Mapping[Hashable, Sequence[Call]], initial: Hashable = None) -> list[Anomaly]:
    found = []
    for name, calls in registers.items():
        stuck = first_stuck_window(calls, initial)
        if stuck is not None:
            shown = "; ".join(f"{call.process} {call.action} [{call.invoked}, {call.returned}]" for call in stuck)
            found.append(Anomaly(Kind.NOT_LINEARIZABLE, f"{name}: no order explains {shown}"))
    return found


def first_stuck_window(calls: Sequence[Call], initial: Hashable) -> list[Call] | None:
    """None: linearizable. Else the calls of the first window for which there is no order."""
    open_calls = _useful_open_calls(calls)
    worlds: dict[World, None] = {(initial, frozenset()): None}
    joined = 0
    for window in _windows([call for call in calls if call.returned is not None]):
        last_return = max(call.returned for call in window if call.returned is not None)
        while joined < len(open_calls) and open_calls[joined].invoked < last_return:
            worlds = {(value, pending | {joined}): None for value, pending in worlds}
            joined += 1
        worlds = _ends_of(window, open_calls, worlds)
        if not worlds:
            return window
    return None


def _useful_open_calls(calls: Sequence[Call]) -> list[Call]:
    """An effect that nobody ever saw may as well not have happened."""
    seen = {call.action.value for call in calls if isinstance(call.action, Read)}
    seen |= {call.action.expected for call in calls if isinstance(call.action, Cas)}
    refused = any(isinstance(call.action, Cas) and not call.action.is_done for call in calls)
    useful = [
        call
        for call in calls
        if call.returned is None and not isinstance(call.action, Read) and (refused or call.action.value in seen)
    ]
    return sorted(useful, key=lambda call: call.invoked)


def _windows(calls: Sequence[Call]) -> Iterator[list[Call]]:
    window: list[Call] = []
    end = 0.0
    for call in sorted(calls, key=lambda call: call.invoked):
        assert call.returned is not None
        if window and call.invoked > end:
            yield window
            window = []
        end = max(end, call.returned) if window else call.returned
        window.append(call)
    if window:
        yield window


def _ends_of(window: Sequence[Call], open_calls: Sequence[Call], worlds: Mapping[World, None]) -> dict[World, None]:
    """Every world that some order of the window's calls ends in."""
    everything = (1 << len(window)) - 1
    ends: dict[World, None] = {}
    seen: set[tuple[int, World]] = set()
    work = [(0, world) for world in worlds]
    while work:
        done, world = work.pop()
        if (done, world) in seen:
            continue
        seen.add((done, world))
        if done == everything:
            ends[world] = None
        work.extend(_next_steps(window, open_calls, done, world))
    return ends


def _next_steps(
    window: Sequence[Call], open_calls: Sequence[Call], done: int, world: World
) -> Iterator[tuple[int, World]]:
    value, pending = world
    # whoever was invoked after another's return cannot come before it
    first_return = min((call.returned or 0.0 for i, call in enumerate(window) if not done >> i & 1), default=None)
    for i, call in enumerate(window):
        if not done >> i & 1 and first_return is not None and call.invoked <= first_return:
            for after in _applied(call.action, value):
                yield done | 1 << i, (after, pending)
    for number in sorted(pending):
        call = open_calls[number]
        if first_return is None or call.invoked <= first_return:
            for after in _applied(call.action, value):
                yield done, (after, pending - {number})


def _applied(action: Action, value: Hashable) -> tuple[Hashable, ...]:
    """The value afterwards; nothing where the action contradicts the present one."""
    match action:
        case Write(new):
            return (new,)
        case Read(seen):
            return (value,) if seen == value else ()
        case Cas(expected, new, True):
            return (new,) if expected == value else ()
        case Cas(expected, _, False):
            return (value,) if expected != value else ()
    raise AssertionError(action)
