"""`manage.py up` as a user runs it, with its three brokers."""

from __future__ import annotations

import re
import shlex
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from control_plane.supervisor.management.commands.up import BROKERS_DEFAULT
from control_plane.supervisor.plan import PORT_SPAN
from tests.control_plane.supervisor.running import (
    REPOSITORY,
    START_TIMEOUT_S,
    STOP_TIMEOUT_S,
    Up,
    api_key,
    is_up,
    wait_until,
)
from tests.ports import own_port, own_port_row


@pytest.fixture(scope="module")
def up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Up]:
    """Started once; the tests below follow one another like a user's first hour."""
    up = Up(tmp_path_factory.mktemp("up") / "home", own_port(), own_port_row(PORT_SPAN))
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


def test_it_says_where_to_go_and_shows_progress(up: Up) -> None:
    assert f"Dashboard   http://127.0.0.1:{up.http_port}" in up.output
    assert "demo@highwater.local" in up.output
    brokers = [f"starting broker-{number}" for number in range(1, BROKERS_DEFAULT + 1)]
    for step in ("database", *brokers, "tenants and keys", "starting web", "starting worker", "starting beat"):
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
    second = Up(tmp_path / "second", up.http_port, own_port_row(PORT_SPAN))
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


def test_ctrl_c_stops_all_and_a_second_start_finds_its_data(up: Up) -> None:
    key, children = api_key(up), up.children()
    records = f"http://127.0.0.1:{up.http_port}/api/v1/topics/hello/records"
    answer = httpx.post(records, auth=key, json=[{"value": "kept", "partition": 1}])
    offset = answer.json()["results"][0]["offset"]
    assert up.stop(signal.SIGINT) == 0, up.output
    stops = re.findall(r"stopping ([\w-]+): ok", up.output)
    brokers = [f"broker-{number}" for number in range(1, BROKERS_DEFAULT + 1)]
    assert stops == ["web", "worker", "beat", *brokers]
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
    assert len(children) == 3 + BROKERS_DEFAULT
    assert up.process is not None
    up.process.kill()
    up.process.wait()
    up.process = None
    wait_until(lambda: not any(child.is_running() for child in children), STOP_TIMEOUT_S)
