"""One child process: started with its log, ended with us whatever happens to us, stopped with patience.

Children run in sessions of their own: a Ctrl-C in the terminal reaches the supervisor alone, which then stops them in
order. `ends_with_parent.py` makes the kernel end each when the supervisor dies, even by SIGKILL. That is tied to the
thread that started the child, so start children from the main thread only.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

LAUNCHER = Path(__file__).with_name("ends_with_parent.py")
LOG_BYTES_MAX = 20 << 20
TAIL_BYTES = 8192


@dataclass(frozen=True, slots=True)
class ChildSpec:
    """What to run. `is_ready` looks at the log text of this start, or asks the process over the network."""

    name: str
    argv: Sequence[str]
    environment: Mapping[str, str]
    is_ready: Callable[[Child], bool]
    ready_within_s: float = 60.0


@dataclass(slots=True)
class Child:
    spec: ChildSpec
    log_path: Path
    working_directory: Path
    process: subprocess.Popen[bytes] | None = None
    started_at_s: float = 0.0
    log_start_bytes: int = field(default=0, repr=False)

    @property
    def name(self) -> str:
        return self.spec.name

    @property
    def is_running(self) -> bool:
        return self.process is not None and self.process.poll() is None

    @property
    def exit_code(self) -> int | None:
        return None if self.process is None else self.process.poll()

    @property
    def lived_s(self) -> float:
        return time.monotonic() - self.started_at_s

    def start(self) -> None:
        self.log_path.parent.mkdir(parents=True, exist_ok=True)
        _rotate(self.log_path)
        with self.log_path.open("ab") as log:
            self.log_start_bytes = log.tell()
            self.process = subprocess.Popen(  # noqa: S603 - argv is ours, no shell
                [sys.executable, "-I", str(LAUNCHER), str(os.getpid()), *self.spec.argv],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env=dict(self.spec.environment),
                cwd=self.working_directory,
                start_new_session=True,
            )
        self.started_at_s = time.monotonic()

    def log_text(self) -> str:
        """What this start has written so far."""
        with self.log_path.open("rb") as log:
            log.seek(self.log_start_bytes)
            return log.read().decode("utf-8", "replace")

    def log_tail(self, line_count: int) -> list[str]:
        return self.log_text()[-TAIL_BYTES:].splitlines()[-line_count:]

    def is_ready(self) -> bool:
        return self.is_running and self.spec.is_ready(self)

    def send_signal(self, number: int) -> None:
        if self.process is not None and self.is_running:
            self.process.send_signal(number)

    def wait(self, timeout_s: float) -> bool:
        """True when the process has ended within the time."""
        if self.process is None:
            return True
        try:
            self.process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            return False
        return True

    def kill(self) -> None:
        """End the child and whatever it has started; its session is its own, so the group is too."""
        if self.process is not None and self.is_running:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()


def _rotate(log_path: Path) -> None:
    if log_path.exists() and log_path.stat().st_size > LOG_BYTES_MAX:
        log_path.replace(log_path.with_suffix(".log.1"))
