"""`manage.py up` as a user runs it: real processes in a home of their own, on free ports."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import httpx
import psutil

REPOSITORY = Path(__file__).resolve().parents[3]
START_TIMEOUT_S = 120.0
STOP_TIMEOUT_S = 60.0


class Up:
    """One `manage.py up`; what it prints goes to a file."""

    def __init__(self, home: Path, http_port: int, kafka_port: int) -> None:
        self.home, self.http_port, self.kafka_port = home, http_port, kafka_port
        self.output_path = home.with_suffix(".out")
        self.process: subprocess.Popen[bytes] | None = None

    @property
    def output(self) -> str:
        return self.output_path.read_text() if self.output_path.exists() else ""

    def start(self, *options: str, **environment: str) -> None:
        command = [sys.executable, "manage.py", "up", "--home", str(self.home), *options]
        command += ["--http-port", str(self.http_port), "--kafka-port", str(self.kafka_port)]
        own = {name: value for name, value in os.environ.items() if not name.startswith("HIGHWATER_")}
        with self.output_path.open("wb") as out:
            self.process = subprocess.Popen(command, cwd=REPOSITORY, env={**own, **environment}, stdout=out, stderr=out)

    def wait_for(self, text: str, timeout_s: float = START_TIMEOUT_S) -> None:
        def is_there() -> bool:
            assert self.process is not None
            assert self.process.poll() is None or text in self.output, f"up ended:\n{self.output}\n{self._logs()}"
            return text in self.output

        wait_until(is_there, timeout_s, lambda: self.output + self._logs())

    def stop(self, signal_number: int = signal.SIGINT) -> int:
        assert self.process is not None
        process, self.process = self.process, None
        process.send_signal(signal_number)
        try:
            return process.wait(STOP_TIMEOUT_S)
        finally:
            process.kill()

    def children(self) -> list[psutil.Process]:
        assert self.process is not None
        return psutil.Process(self.process.pid).children(recursive=True)

    def _logs(self) -> str:
        paths = sorted((self.home / "logs").glob("*.log"))
        return "".join(f"\n--- {path.name}\n" + "\n".join(path.read_text().splitlines()[-15:]) for path in paths)


def wait_until(condition: Callable[[], bool], timeout_s: float, what_was: Callable[[], str] = str) -> None:
    deadline_s = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline_s, f"it did not come true in {timeout_s} s:\n{what_was()}"
        time.sleep(0.05)


def api_key(up: Up) -> httpx.BasicAuth:
    found = re.search(r"API key +(\S+):(\S+)", up.output)
    assert found is not None, up.output
    return httpx.BasicAuth(found.group(1), found.group(2))


def is_up(up: Up) -> bool:
    try:
        return httpx.get(f"http://127.0.0.1:{up.http_port}/readyz").status_code == 200
    except httpx.TransportError:
        return False
