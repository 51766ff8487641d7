"""Fixtures of the REST tests: the control plane's small world, seen through HTTP."""

from __future__ import annotations

import pytest
from pytest_django import Settings

from tests.api.rest import Rest
from tests.control_plane.world import House, acme, demo, empty_cache, engine, queue, quick_passwords

__all__ = ["acme", "demo", "empty_cache", "engine", "queue", "quick_passwords"]


@pytest.fixture(autouse=True)
def only_the_resources(settings: Settings) -> None:
    settings.ROOT_URLCONF = "tests.api.urls"


@pytest.fixture
def owner(demo: House) -> Rest:
    return Rest.of_user(demo.owner)


@pytest.fixture
def developer(demo: House) -> Rest:
    return Rest.of_user(demo.developer)


@pytest.fixture
def viewer(demo: House) -> Rest:
    return Rest.of_user(demo.viewer)
