"""One broker of a cluster under test: a real process that is killed, stopped, resumed, wiped and started again."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
READY_TIMEOUT_S = 60.0
STOP_TIMEOUT_S = 60.0
POLL_S = 0.02


class NodeFailed(AssertionError):
    """The process ended, or did not get ready in time; the text has the end of its log."""


@dataclass(slots=True)
class Node:
    node_id: int
    folder: Path
    command: list[str]
    """All but the data directory."""
    environment: Mapping[str, str]
    data_dir: Path = field(init=False)
    _process: subprocess.Popen[bytes] | None = None
    _ready_count: int = 0

    def __post_init__(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        self.data_dir = self.folder / "data"

    @property
    def pid(self) -> int:
        assert self._process is not None, f"node {self.node_id} does not run"
        return self._process.pid

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    @property
    def log_path(self) -> Path:
        return self.folder / "stderr.log"

    def launch(self) -> None:
        """Starts the process without waiting for it."""
        assert not self.is_running, f"node {self.node_id} runs already"
        self._ready_count = self._count_ready_lines()
        command = [sys.executable, "-m", "broker_engine", "serve", "--data-dir", str(self.data_dir), *self.command]
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("HIGHWATER_")}
        with self._stdout_path.open("ab") as out, self.log_path.open("ab") as log:
            self._process = subprocess.Popen(
                command, stdout=out, stderr=log, cwd=REPOSITORY, env={**inherited, **self.environment}
            )

    def wait_until_ready(self) -> None:
        deadline = time.monotonic() + READY_TIMEOUT_S
        while self._count_ready_lines() == self._ready_count:
            if not self.is_running or time.monotonic() > deadline:
                raise NodeFailed(f"node {self.node_id} did not get ready:\n{self.log_tail()}")
            time.sleep(POLL_S)

    def kill(self) -> None:
        self._end(signal.SIGKILL)

    def terminate(self) -> int:
        """SIGTERM; the exit code."""
        return self._end(signal.SIGTERM)

    def pause(self) -> None:
        os.kill(self.pid, signal.SIGSTOP)

    def resume(self) -> None:
        os.kill(self.pid, signal.SIGCONT)

    def wipe(self) -> None:
        """The disk was replaced: nothing of the node is left but its name."""
        assert not self.is_running
        for path in self.data_dir.iterdir():
            shutil.rmtree(path) if path.is_dir() else path.unlink()

    def log_tail(self, line_count: int = 25) -> str:
        lines = self.log_path.read_text(errors="replace").splitlines() if self.log_path.exists() else []
        return "\n".join(lines[-line_count:])

    def _end(self, number: signal.Signals) -> int:
        assert self._process is not None, f"node {self.node_id} does not run"
        process, self._process = self._process, None
        process.send_signal(number)
        try:
            return process.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            text = f"node {self.node_id} did not stop within {STOP_TIMEOUT_S:.0f} s:\n{self.log_tail()}"
            raise NodeFailed(text) from None

    @property
    def _stdout_path(self) -> Path:
        return self.folder / "stdout.log"

    def _count_ready_lines(self) -> int:
        if not self._stdout_path.exists():
            return 0
        return sum(line.startswith(b"ready ") for line in self._stdout_path.read_bytes().splitlines())
