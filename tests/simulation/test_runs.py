"""Whole clusters under faults, by seed: nothing that was promised is broken, and a seed repeats its run."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.simulation.conftest import SEED_COUNT, Campaign

REPEATED_COUNT = 10


def _simulate(*arguments: str, hash_seed: int = 0) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "broker_engine.simulator", *arguments]
    environment = {**os.environ, "PYTHONHASHSEED": str(hash_seed)}
    return subprocess.run(command, capture_output=True, text=True, check=False, env=environment)


@pytest.mark.timeout(900)
def test_no_rule_is_broken(campaign: Campaign) -> None:
    code, said = campaign.result()
    assert code == 0, said[-8000:]
    assert f"simulation: {SEED_COUNT} seeds" in said
    assert "violations 0" in said


def test_a_seed_repeats_its_run_whatever_the_order_of_sets() -> None:
    """In two processes, whose strings have different hashes."""
    arguments = ("--from", "1000", "--seeds", str(REPEATED_COUNT), "--hashes")
    first, second = _simulate(*arguments, hash_seed=1), _simulate(*arguments, hash_seed=2)
    assert first.returncode == 0, first.stderr[-4000:]
    assert len(set(first.stdout.splitlines())) == REPEATED_COUNT
    assert first.stdout == second.stdout
