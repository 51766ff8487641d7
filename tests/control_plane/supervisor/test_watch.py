"""The supervising loop against small real processes."""

from __future__ import annotations

import io
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from control_plane.supervisor.child import Child, ChildSpec
from control_plane.supervisor.progress import Progress
from control_plane.supervisor.readiness import log_says
from control_plane.supervisor.watch import StartError, Supervisor

SERVE = "import time; print('ready', flush=True); time.sleep(600)"
STUBBORN = f"import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); {SERVE}"


def make_child(tmp_path: Path, program: str, name: str = "server") -> Child:
    spec = ChildSpec(name, [sys.executable, "-c", program], dict(os.environ), log_says("ready"), ready_within_s=20)
    return Child(spec, tmp_path / f"{name}.log", tmp_path)


def wait_for(condition: Callable[[], bool], timeout_s: float = 20) -> None:
    deadline_s = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline_s, "the condition did not come true in time"
        time.sleep(0.02)


@pytest.fixture
def said() -> io.StringIO:
    return io.StringIO()


@pytest.fixture
def supervisor(said: io.StringIO) -> Supervisor:
    return Supervisor(Progress(said))


def test_children_are_stopped_in_the_order_given(tmp_path: Path, supervisor: Supervisor, said: io.StringIO) -> None:
    for name in ("broker", "web"):
        supervisor.start(make_child(tmp_path, SERVE, name))
    supervisor.stop([["web"], ["broker"]])
    steps = [line.split(":")[0].strip() for line in said.getvalue().splitlines()]
    assert steps == ["starting broker", "starting web", "stopping web", "stopping broker"]


def test_the_children_of_one_group_are_told_to_stop_at_once(tmp_path: Path, supervisor: Supervisor) -> None:
    waits = "while not p.exists(): time.sleep(0.01)"
    one = (
        "import signal, sys, time; from pathlib import Path\n"
        f"p = Path({str(tmp_path / 'told')!r})\n"
        f"def wait(*_):\n    {waits}\n    sys.exit(0)\n"
        f"signal.signal(signal.SIGTERM, wait); {SERVE}"
    )
    other = (
        "import signal, sys; from pathlib import Path\n"
        f"def tell(*_):\n    Path({str(tmp_path / 'told')!r}).touch(); sys.exit(0)\n"
        f"signal.signal(signal.SIGTERM, tell); {SERVE}"
    )
    children = [make_child(tmp_path, one, "broker-1"), make_child(tmp_path, other, "broker-2")]
    supervisor.start(*children)
    supervisor.stop([["broker-1", "broker-2"]])
    assert [child.exit_code for child in children] == [0, 0]


def test_a_child_that_ends_at_once_is_reported_with_its_last_words(tmp_path: Path, supervisor: Supervisor) -> None:
    child = make_child(tmp_path, "import sys; sys.exit('no such config: log.dirz')")
    with pytest.raises(StartError, match=r"server ended with code 1(.|\n)*no such config: log\.dirz"):
        supervisor.start(child)


def test_a_child_that_ends_while_another_is_waited_for_is_reported_at_once(
    tmp_path: Path, supervisor: Supervisor
) -> None:
    waiting = make_child(tmp_path, "import time; time.sleep(600)", "broker-1")
    dying = make_child(tmp_path, "import sys; sys.exit('address already in use')", "broker-2")
    with pytest.raises(StartError, match="broker-2 ended with code 1"):
        supervisor.start(waiting, dying)
    supervisor.stop([["broker-1", "broker-2"]])


def test_a_child_that_dies_is_started_again(tmp_path: Path, supervisor: Supervisor, said: io.StringIO) -> None:
    child = make_child(tmp_path, SERVE)
    supervisor.start(child)
    first_pid = child.process.pid if child.process else 0
    os.kill(first_pid, signal.SIGKILL)

    def stop_when_back() -> None:
        wait_for(lambda: "started again" in said.getvalue())
        supervisor.stop_count = 1

    watcher = threading.Thread(target=stop_when_back)
    watcher.start()
    supervisor.watch()
    watcher.join()
    assert "server ended with code -9; starts again in 1 s" in said.getvalue()
    assert child.is_running
    supervisor.stop([["server"]])
    assert not child.is_running


def test_what_does_not_stop_is_killed(tmp_path: Path, supervisor: Supervisor, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("control_plane.supervisor.watch.STOP_WITHIN_S", 0.3)
    child = make_child(tmp_path, STUBBORN)
    supervisor.start(child)
    supervisor.stop([["server"]])
    assert child.exit_code == -signal.SIGKILL


def test_children_end_when_the_supervisor_is_killed(tmp_path: Path) -> None:
    program = (
        "from pathlib import Path; from tests.control_plane.supervisor.test_watch import make_child, SERVE\n"
        f"child = make_child(Path({str(tmp_path)!r}), SERVE); child.start(); print(child.process.pid, flush=True)\n"
        "import time; time.sleep(600)"
    )
    parent = subprocess.Popen(
        [sys.executable, "-c", program],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": ":".join(sys.path)},
    )
    assert parent.stdout is not None
    child_pid = int(parent.stdout.readline())
    parent.kill()
    parent.wait()
    wait_for(lambda: not psutil.pid_exists(child_pid) or psutil.Process(child_pid).status() == psutil.STATUS_ZOMBIE)
