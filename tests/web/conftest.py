"""One broker and one server for all tests of this folder."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.web.stack import Stack


@pytest.fixture(scope="session")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    with Stack(tmp_path_factory.mktemp("web-stack")).running() as stack:
        yield stack
