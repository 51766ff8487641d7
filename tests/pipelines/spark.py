"""Run a piece of Python inside the pipelines' own environment, as a user's job would run."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
SPARK_PYTHON = REPOSITORY / ".venv-pipelines" / "bin" / "python"


def run_in_spark_environment(*arguments: str, timeout_s: float = 240) -> str:
    """Run python with these arguments; its stdout, or an assertion with all that it said."""
    assert SPARK_PYTHON.exists(), "the pipelines environment is missing: run `make pipelines`"
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
    done = subprocess.run(
        [str(SPARK_PYTHON), *arguments],
        cwd=REPOSITORY,
        env=environment,
        capture_output=True,
        text=True,
        timeout=timeout_s,
        check=False,
    )
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr[-4000:]}"
    return done.stdout
