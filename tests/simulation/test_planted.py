"""Bugs that others had, planted here: the simulation finds each of them."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from broker_engine.simulator.planted import PLANTED, Planted
from broker_engine.simulator.planted_profiles import PROFILES
from broker_engine.simulator.run import play
from broker_engine.simulator.schedule import draw_faults
from broker_engine.simulator.swarm import Swarm, draw
from tests.simulation.conftest import PLANTED_SEED_COUNT, Findings


@pytest.mark.timeout(600)
@pytest.mark.parametrize("planted", PLANTED, ids=lambda planted: planted.name)
def test_a_planted_bug_is_found(planted: Planted, findings: Findings) -> None:
    assert findings[planted.name].result(), f"{planted.what}: not found by {PLANTED_SEED_COUNT} seeds"


@pytest.mark.parametrize("profile", PROFILES)
def test_a_profile_alone_breaks_nothing(profile: Callable[[Swarm], Swarm]) -> None:
    for seed in range(2):
        swarm = profile(draw(seed))
        assert play(swarm, draw_faults(swarm)).violations == []


def test_nothing_of_it_stays() -> None:
    planted = PLANTED[0]
    before = [vars(patch.owner)[patch.attribute] for patch in planted.patches]
    with planted.in_place():
        assert [vars(patch.owner)[patch.attribute] for patch in planted.patches] != before
    assert [vars(patch.owner)[patch.attribute] for patch in planted.patches] == before
