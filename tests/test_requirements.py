"""What is pinned is all that pip needs, on the oldest Python that we name too.

The pins are made on one Python, with hashes: what a package asks for on another one only is left out, and pip then
refuses to install anything.
"""

from __future__ import annotations

import re
from importlib.metadata import requires
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

REQUIREMENTS = Path(__file__).resolve().parents[1] / "requirements"
PINNED = re.compile(r"^([A-Za-z0-9._-]+)==", re.MULTILINE)
OLDEST = {"python_version": "3.11", "python_full_version": "3.11.0", "extra": ""}


def pinned_in(name: str) -> set[str]:
    return {canonicalize_name(found) for found in PINNED.findall((REQUIREMENTS / f"{name}.txt").read_text())}


def needed_by(package: str) -> set[str]:
    asked = [Requirement(line) for line in requires(package) or ()]
    return {canonicalize_name(each.name) for each in asked if each.marker is None or each.marker.evaluate(OLDEST)}


@pytest.mark.parametrize("name", ["base", "dev"])
def test_the_oldest_python_finds_everything_pinned(name: str) -> None:
    pinned = pinned_in(name)
    missing = {package: lacking for package in pinned if (lacking := needed_by(package) - pinned)}
    assert not missing, "name them in requirements/*.in, then: make lock"
