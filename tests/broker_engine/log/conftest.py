from __future__ import annotations

from pathlib import Path

import pytest

from broker_engine.log.files import DiskFiles, Files, MemoryFiles
from tests.broker_engine.log.harness import LogHarness


@pytest.fixture(params=["memory", "disk"])
def files(request: pytest.FixtureRequest, tmp_path: Path) -> Files:
    return MemoryFiles() if request.param == "memory" else DiskFiles(tmp_path)


@pytest.fixture
def harness(files: Files) -> LogHarness:
    return LogHarness(files)
