"""A cell whose toolchain is missing shows nothing, and must not pass for one that was played."""

from __future__ import annotations

import pytest

from tests.compatibility.cells import play, shortfall


@pytest.mark.parametrize("client", ["java-4.3.1", "kafkajs", "franz-go"])
def test_a_cell_without_its_toolchain_is_a_shortfall(client: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    cells = play(client, ["acks-all"], "127.0.0.1:1")
    assert cells["acks-all"].verdict == "not run"
    assert "missing: make" in shortfall(cells)["acks-all"]
