"""The faults of a run, drawn before it begins: plain data, so that a list that breaks something can be made shorter."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from random import Random
from typing import Any

from broker_engine.simulator.swarm import Swarm


@dataclass(frozen=True, slots=True)
class Fault:
    at_s: float
    """After the beginning of the chaos."""
    kind: str
    node: int = 0
    other: int = 0
    for_s: float = 0.0
    number: int = 0
    """What the kind makes of it: a count of disk calls, a factor, milliseconds."""

    def __str__(self) -> str:
        parts = [f"{self.at_s:.3f} {self.kind}"]
        parts += [f"node{number}" for number in (self.node, self.other) if number]
        if self.for_s:
            parts.append(f"for {self.for_s:.2f} s")
        if self.number:
            parts.append(f"({self.number})")
        return " ".join(parts)

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


_LASTING_S = (0.05, 0.3, 1.0, 3.0, 8.0)
_WIPES_MAX = 1
"""A disk that is gone is a copy that is gone: more of them than min.insync allows would excuse any loss."""


_WEAKNESSES = frozenset({"power", "power_at_call", "sync_error", "wipe", "rot"})
_WEAK_RATIO = 0.6
"""Of the runs so many have one node only whose disk forgets: that excuses no loss where two have to be in sync."""


def draw_faults(swarm: Swarm) -> tuple[Fault, ...]:
    random = Random(f"{swarm.seed}/faults")  # noqa: S311 - a plan, nothing secret
    kinds, weights = list(swarm.fault_weights), list(swarm.fault_weights.values())
    faults: list[Fault] = []
    at_s, wipes_left = random.expovariate(swarm.faults_per_s), _WIPES_MAX
    weak_node = random.choice(swarm.node_ids) if random.random() < _WEAK_RATIO else None
    while at_s < swarm.chaos_s:
        kind = random.choices(kinds, weights)[0]
        if kind != "wipe" or wipes_left:
            wipes_left -= kind == "wipe"
            faults.append(_fault(random, swarm, kind, at_s, weak_node))
        at_s += random.expovariate(swarm.faults_per_s)
    return tuple(faults)


def _fault(random: Random, swarm: Swarm, kind: str, at_s: float, weak_node: int | None) -> Fault:
    node = random.choice(swarm.node_ids)
    if weak_node is not None and kind in _WEAKNESSES:
        node = weak_node
    others = [number for number in swarm.node_ids if number != node]
    other = random.choice(others) if others else 0
    lasting_s = min(swarm.lasting_s_max, random.choice(_LASTING_S) * (0.5 + random.random()))
    numbers = {
        "kill_at_call": random.choice([1, 3, 10, 40]),
        "power_at_call": random.choice([1, 3, 10, 40]),
        "slow_disk": random.choice([5, 20, 100]),
        "slow_link": random.choice([5, 30, 300]),
        "clock": random.choice([-3_600_000, -5_000, 5_000, 3_600_000, 86_400_000]),
        "flap": random.choice([100, 500, 3_000]),
    }
    number = numbers.get(kind, random.randrange(1, 1 << 16))
    return Fault(round(at_s, 4), kind, node, other, round(lasting_s, 4), number)
