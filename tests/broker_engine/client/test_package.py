"""What the package gives by name, and what it costs a process that takes single modules of it."""

from __future__ import annotations

import subprocess
import sys

import pytest

import broker_engine.client
from broker_engine.client import public


def test_the_package_has_every_public_name() -> None:
    for name in public.__all__:
        assert getattr(broker_engine.client, name) is getattr(public, name)


def test_a_name_that_is_not_there_is_said_as_of_any_module() -> None:
    with pytest.raises(ImportError, match="Nothing"):
        from broker_engine.client import Nothing  # type: ignore[attr-defined]  # noqa: F401


def test_a_broker_loads_neither_producers_nor_admins() -> None:
    program = (
        "import sys, broker_engine.serve; print([n for n in sys.modules if n.startswith('broker_engine.client.')])"
    )
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    assert "client.errors" in found
    assert "client.admin" not in found
    assert "client.producer" not in found
