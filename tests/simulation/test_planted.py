"""Bugs that others had, planted here: the simulation finds each of them."""

from __future__ import annotations

import pytest

from broker_engine.simulator.planted import PLANTED, Planted, find

SEED_COUNT = 40


@pytest.mark.timeout(600)
@pytest.mark.parametrize("planted", PLANTED, ids=lambda planted: planted.name)
def test_a_planted_bug_is_found(planted: Planted) -> None:
    found = find(planted, range(planted.first_seed, planted.first_seed + SEED_COUNT))
    assert found is not None, f"{planted.what}: not found by {SEED_COUNT} seeds"


def test_nothing_of_it_stays() -> None:
    planted = PLANTED[0]
    before = [vars(patch.owner)[patch.attribute] for patch in planted.patches]
    with planted.in_place():
        assert [vars(patch.owner)[patch.attribute] for patch in planted.patches] != before
    assert [vars(patch.owner)[patch.attribute] for patch in planted.patches] == before
