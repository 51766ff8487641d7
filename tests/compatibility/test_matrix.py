"""The matrix of client x feature: one cell of each kind per client here, all of them in `make test-all`.

One process per client plays all the cells that were selected: a JVM's start is dear.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from tests.broker_engine.broker_process import BrokerProcess
from tests.compatibility.__main__ import SETTINGS
from tests.compatibility.cells import Cell, play
from tests.compatibility.matrix import CLIENTS, FEATURE_OF, FEATURES, absence

Played = Callable[[str], dict[str, Cell]]


def cells() -> Iterator[object]:
    for client in CLIENTS:
        for feature in FEATURES:
            if absence(client, feature) is None:
                marks = [getattr(pytest.mark, name) for name in client.marks]
                marks += [] if feature.is_quick else [pytest.mark.slow]
                yield pytest.param(client.key, feature.key, marks=marks, id=f"{client.key}-{feature.key}")


@pytest.fixture(scope="module")
def bootstrap(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with BrokerProcess(tmp_path_factory.mktemp("matrix") / "broker", settings=SETTINGS) as process:
        yield process.address()
        assert process.stop() == 0


@pytest.fixture(scope="module")
def played(request: pytest.FixtureRequest, bootstrap: str) -> Played:
    """Of a client: every cell that this run of pytest wants, played at the first question."""
    wanted: dict[str, list[str]] = {}
    for item in request.session.items:
        if item.path == request.path and isinstance(item, pytest.Function) and hasattr(item, "callspec"):
            wanted.setdefault(item.callspec.params["client"], []).append(item.callspec.params["feature"])
    known: dict[str, dict[str, Cell]] = {}

    def cells_of(client: str) -> dict[str, Cell]:
        if client not in known:
            known[client] = play(client, wanted[client], bootstrap)
        return known[client]

    return cells_of


@pytest.mark.timeout(600)
@pytest.mark.parametrize(("client", "feature"), list(cells()))
def test_a_client_has_the_feature_and_it_works(played: Played, client: str, feature: str) -> None:
    """What is missing on the machine fails, with the command that brings it: a skip would hide a gap."""
    cell = played(client)[feature]
    assert cell.verdict == "passed", cell.why


def test_what_is_left_out_of_the_matrix_is_a_feature_and_has_a_reason() -> None:
    for client in CLIENTS:
        for key, why in client.absent.items():
            assert key in FEATURE_OF, f"{client.key}: {key}"
            assert why


def test_every_kind_of_feature_has_a_cell_in_the_quick_tier() -> None:
    assert {feature.kind for feature in FEATURES if feature.is_quick} == {feature.kind for feature in FEATURES}
