"""Apache Kafka's own tools, run over files that we wrote. `make kafka-peer` fetches them."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path

import pytest

LIBS = Path(__file__).parents[2] / "compatibility" / "kafka-peer" / "libs"
_DUMP_LOG = "org.apache.kafka.tools.DumpLogSegments"
_TIMEOUT_S = 120


def need_kafka_tools() -> None:
    if shutil.which("java") is None or not LIBS.is_dir():
        pytest.fail("Java or Apache Kafka's jars are missing: make kafka-peer")


def dump_log(paths: Iterable[Path], *options: str) -> str:
    """What `kafka-dump-log` says of the files, complaints included."""
    names = ",".join(str(path) for path in paths)
    command = ["java", "-Xmx256m", "-cp", f"{LIBS}/*", _DUMP_LOG, "--files", names, *options]
    done = subprocess.run(command, capture_output=True, text=True, timeout=_TIMEOUT_S, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr
