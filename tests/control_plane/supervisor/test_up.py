"""`manage.py up` as a user runs it: real processes in a home of their own, on free ports."""

from __future__ import annotations

import os
import random
import re
import shlex
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import psutil
import pytest

REPOSITORY = Path(__file__).resolve().parents[3]
START_TIMEOUT_S = 120.0
STOP_TIMEOUT_S = 60.0


def free_port_row(count: int) -> int:
    """The first of `count` free ports in a row, below those that the kernel hands to outgoing connections.

    The ports stand empty between stop and second start: nothing else may be given them meanwhile.
    """
    for first in random.sample(range(20_000, 32_000, 8), 100):
        if all(_is_free(first + step) for step in range(count)):
            return first
    raise AssertionError("no free ports in a row")


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


class Up:
    """One `manage.py up`; what it prints goes to a file."""

    def __init__(self, home: Path, http_port: int, kafka_port: int) -> None:
        self.home, self.http_port, self.kafka_port = home, http_port, kafka_port
        self.output_path = home.with_suffix(".out")
        self.process: subprocess.Popen[bytes] | None = None

    @property
    def output(self) -> str:
        return self.output_path.read_text() if self.output_path.exists() else ""

    def start(self, **environment: str) -> None:
        command = [sys.executable, "manage.py", "up", "--home", str(self.home)]
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


@pytest.fixture(scope="module")
def up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Up]:
    """Started once; the tests below follow one another like a user's first hour."""
    up = Up(tmp_path_factory.mktemp("up") / "home", free_port_row(1), free_port_row(4))
    up.start()
    up.wait_for("Ctrl-C stops everything")
    yield up
    if up.process is not None:
        up.stop()


def printed_commands(up: Up) -> list[str]:
    lines = up.output.splitlines()
    first = lines.index("Three commands to try:")
    return [line.strip() for line in lines[first + 1 :] if line.startswith("  ")]


def run_shell(command: str) -> str:
    done = subprocess.run(
        ["bash", "-c", command], cwd=REPOSITORY, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
    return done.stdout


def api_key(up: Up) -> httpx.BasicAuth:
    found = re.search(r"API key +(\S+):(\S+)", up.output)
    assert found is not None, up.output
    return httpx.BasicAuth(found.group(1), found.group(2))


def test_it_says_where_to_go_and_shows_progress(up: Up) -> None:
    assert f"Dashboard   http://127.0.0.1:{up.http_port}" in up.output
    assert "demo@highwater.local" in up.output
    for step in ("database", "starting broker", "tenants and keys", "starting web", "starting worker", "starting beat"):
        assert re.search(rf"{step}: ok \(\d+\.\d s\)", up.output), step


def test_the_printed_commands_work(up: Up) -> None:
    kcat, curl, python = printed_commands(up)
    if shutil_which("kcat"):
        assert "hello" in run_shell(kcat)
    assert '"results": [{"partition":' in run_shell(curl)
    assert "at offset" in run_shell(python)


def shutil_which(name: str) -> bool:
    return subprocess.run(["which", name], capture_output=True, check=False).returncode == 0


def test_secrets_are_for_their_owner_only(up: Up) -> None:
    for name in ("cluster-secret", "demo-credentials.json"):
        assert (up.home / name).stat().st_mode & 0o777 == 0o600, name


def test_a_taken_port_is_named_with_its_holder(up: Up, tmp_path: Path) -> None:
    second = Up(tmp_path / "second", up.http_port, free_port_row(4))
    second.start()
    assert second.process is not None
    assert second.process.wait(60) == 1
    line = second.output.strip().splitlines()[-1]
    assert re.search(rf"port {up.http_port} \(dashboard and REST\) is taken by process \d+ \(.*uvicorn", line), line
    assert not (tmp_path / "second" / "control-plane.sqlite3").exists()


def test_a_child_that_dies_comes_back(up: Up) -> None:
    [web] = [child for child in up.children() if "uvicorn" in shlex.join(child.cmdline())]
    web.kill()
    up.wait_for("web ended with code -9; starts again in 1 s")
    up.wait_for("web: started again")
    wait_until(lambda: is_up(up), START_TIMEOUT_S)


def is_up(up: Up) -> bool:
    try:
        return httpx.get(f"http://127.0.0.1:{up.http_port}/readyz").status_code == 200
    except httpx.TransportError:
        return False


def test_ctrl_c_stops_all_and_a_second_start_finds_its_data(up: Up) -> None:
    key, children = api_key(up), up.children()
    records = f"http://127.0.0.1:{up.http_port}/api/v1/topics/hello/records"
    answer = httpx.post(records, auth=key, json=[{"value": "kept", "partition": 1}])
    offset = answer.json()["results"][0]["offset"]
    assert up.stop(signal.SIGINT) == 0, up.output
    stops = re.findall(r"stopping (\w+): ok", up.output)
    assert stops == ["web", "worker", "beat", "broker"]
    assert not any(child.is_running() for child in children)

    started_s = time.monotonic()
    up.start()
    up.wait_for("Ctrl-C stops everything")
    assert time.monotonic() - started_s < 60
    assert api_key(up)._auth_header == key._auth_header
    base = f"http://127.0.0.1:{up.http_port}/api/v1/topics/hello/partitions/1/records"
    fetched = httpx.get(base, auth=key, params={"offset": offset}).json()
    assert fetched["records"][0]["value"] == {"type": "string", "data": "kept"}


def test_children_do_not_outlive_a_killed_supervisor(up: Up) -> None:
    children = up.children()
    assert len(children) == 4
    assert up.process is not None
    up.process.kill()
    up.process.wait()
    up.process = None
    wait_until(lambda: not any(child.is_running() for child in children), STOP_TIMEOUT_S)
