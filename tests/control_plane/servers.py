"""Temporary PostgreSQL and Redis servers from Debian's packages, on free ports, gone with the test."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.ports import own_port

START_S_MAX = 30.0


@contextmanager
def postgresql() -> Iterator[str]:
    """The URL of an empty database."""
    binaries = _postgresql_binaries()
    folder = Path(tempfile.mkdtemp(prefix="highwater-postgresql-"))
    data, port = folder / "data", own_port()
    as_user = _drop_root(folder)
    options = f"-p {port} -k {folder} -c listen_addresses=127.0.0.1 -c fsync=off -c max_connections=40"
    control = [*as_user, str(binaries / "pg_ctl"), "-D", str(data), "-w"]
    initialise = [str(binaries / "initdb"), "-D", str(data), "-A", "trust", "-U", "highwater", "--no-sync"]
    try:
        _run([*as_user, *initialise], folder)
        _run([*control, "-o", options, "-l", str(folder / "log"), "start"], folder)
        yield f"postgres://highwater@127.0.0.1:{port}/postgres"
    finally:
        subprocess.run([*control, "-m", "immediate", "stop"], check=False, capture_output=True, cwd=folder)
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def redis_server() -> Iterator[str]:
    binary = shutil.which("redis-server")
    if binary is None:
        pytest.fail("redis-server is not installed (Debian: apt install redis-server)", pytrace=False)
    folder, port = Path(tempfile.mkdtemp(prefix="highwater-redis-")), own_port()
    command = [binary, "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--dir", str(folder)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    try:
        _wait_for_port(port, process)
        yield f"redis://127.0.0.1:{port}/0"
    finally:
        process.terminate()
        process.wait(10)
        shutil.rmtree(folder, ignore_errors=True)


def _postgresql_binaries() -> Path:
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    if not found:
        pytest.fail("PostgreSQL is not installed (Debian: apt install postgresql)", pytrace=False)
    return found[-1].parent


def _drop_root(folder: Path) -> list[str]:
    """PostgreSQL refuses to run as root: then as the user that its package made."""
    if os.geteuid() != 0:
        return []
    shutil.chown(folder, "postgres", "postgres")
    return ["setpriv", "--reuid=postgres", "--regid=postgres", "--init-groups", "--"]


def _run(command: list[str], folder: Path) -> None:
    completed = subprocess.run(
        command, check=False, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, cwd=folder, timeout=START_S_MAX
    )
    if completed.returncode != 0:
        pytest.fail(f"{Path(command[-1]).name}: {completed.stderr.decode()[-2000:]}", pytrace=False)


def _wait_for_port(port: int, process: subprocess.Popen[bytes]) -> None:
    give_up_at = time.monotonic() + START_S_MAX
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return
        except OSError:
            assert process.poll() is None, "the server ended before it listened"
            assert time.monotonic() < give_up_at, f"nothing listens on port {port} after {START_S_MAX} s"
            time.sleep(0.02)  # between two looks at the condition
