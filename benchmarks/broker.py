"""A broker process of our own, started for a measurement, with its CPU and memory as the kernel counts them."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

import psutil

REPOSITORY = Path(__file__).resolve().parents[1]


@dataclass(frozen=True, slots=True)
class Usage:
    cpu_s: float

    def __sub__(self, other: Usage) -> Usage:
        return Usage(self.cpu_s - other.cpu_s)


class MeasuredBroker:
    """`with MeasuredBroker(folder) as broker:` serves on a free port of loopback until the block ends."""

    def __init__(self, data_dir: Path) -> None:
        self._data_dir = data_dir
        self._process: subprocess.Popen[str] | None = None
        self.bootstrap = ""

    def __enter__(self) -> MeasuredBroker:
        command = [
            sys.executable,
            "-m",
            "broker_engine",
            "serve",
            "--data-dir",
            str(self._data_dir),
            "--listen",
            "127.0.0.1:0",
        ]
        self._process = subprocess.Popen(command, cwd=REPOSITORY, stdout=subprocess.PIPE, text=True)
        assert self._process.stdout is not None
        ready = self._process.stdout.readline()
        assert ready.startswith("ready "), f"the broker did not start: {ready!r}"
        self.bootstrap = ready.rpartition("default=")[2].split(",")[0].strip()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        assert self._process is not None
        self._process.terminate()
        self._process.wait(timeout=60)

    def usage(self) -> Usage:
        times = self._psutil().cpu_times()
        return Usage(times.user + times.system)

    def rss_bytes(self) -> int:
        return int(self._psutil().memory_info().rss)

    def _psutil(self) -> psutil.Process:
        assert self._process is not None
        return psutil.Process(self._process.pid)
