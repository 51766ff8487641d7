"""Seeds and planted bugs of `make test` are played beside the other tests: those mostly wait, and leave a core free."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from concurrent.futures import Future, ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import pytest

from broker_engine.simulator.planted import PLANTED, Planted, find

SEED_COUNT = 200
PLANTED_SEED_COUNT = 40
TEST_OF_SEEDS = "test_no_rule_is_broken"
MODULE_OF_PLANTED = "tests.simulation.test_planted"
CAMPAIGN = pytest.StashKey["Campaign"]()
SEARCH = pytest.StashKey["Search"]()

Findings = Mapping[str, Future[bool]]


class Campaign:
    def __init__(self) -> None:
        self._output = tempfile.TemporaryFile("w+")  # noqa: SIM115 - closed with the campaign
        command = ["nice", "-n", "19", sys.executable, "-m", "broker_engine.simulator"]
        self._process = subprocess.Popen(
            [*command, "--seeds", str(SEED_COUNT), "--jobs", "1"],
            stdout=self._output,
            stderr=subprocess.STDOUT,
            env={**os.environ, "PYTHONHASHSEED": "0"},
            cwd=Path(__file__).parents[2],
        )

    def result(self) -> tuple[int, str]:
        """The exit code, and what it said."""
        code = self._process.wait()
        self._output.seek(0)
        return code, self._output.read()

    def close(self) -> None:
        self._process.kill()
        self._process.wait()
        self._output.close()


class Search:
    """For planted bugs."""

    def __init__(self, names: list[str]) -> None:
        self._pool = ProcessPoolExecutor(2, mp_context=get_context("spawn"), initializer=os.nice, initargs=(19,))
        self.findings: Findings = {name: self._pool.submit(is_found, name) for name in names}

    def close(self) -> None:
        self._pool.shutdown(cancel_futures=True)


def is_found(name: str) -> bool:
    planted = next(each for each in PLANTED if each.name == name)
    return find(planted, range(planted.first_seed, planted.first_seed + PLANTED_SEED_COUNT)) is not None


def pytest_collection_finish(session: pytest.Session) -> None:
    if session.config.option.collectonly:
        return
    if any(item.name == TEST_OF_SEEDS for item in session.items):
        session.config.stash[CAMPAIGN] = Campaign()
    names = _planted_names(session)
    if names:
        session.config.stash[SEARCH] = Search(names)


def _planted_names(session: pytest.Session) -> list[str]:
    """Of those that were asked for."""
    asked = [item for item in session.items if isinstance(item, pytest.Function)]
    calls = [item.callspec for item in asked if item.module.__name__ == MODULE_OF_PLANTED and hasattr(item, "callspec")]
    found = [call.params.get("planted") for call in calls]
    return [planted.name for planted in found if isinstance(planted, Planted)]


def pytest_sessionfinish(session: pytest.Session) -> None:
    for key in (CAMPAIGN, SEARCH):
        if (work := session.config.stash.get(key, None)) is not None:
            work.close()


@pytest.fixture
def campaign(request: pytest.FixtureRequest) -> Campaign:
    return request.config.stash[CAMPAIGN]


@pytest.fixture
def findings(request: pytest.FixtureRequest) -> Findings:
    return request.config.stash[SEARCH].findings
