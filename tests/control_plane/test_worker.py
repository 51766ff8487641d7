"""A real Celery worker and beat, on the transport that needs no server, beside a real broker."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from control_plane.environment import REPOSITORY
from tests.broker_engine.broker_process import BrokerProcess

WAIT_S_MAX = 40.0
MAKE_TOPIC = """
from control_plane.tenants.models import Tenant
from control_plane.topics.actions import create_topic
create_topic(actor="test", tenant=Tenant.objects.get(pk="demo"), name="{name}", partitions=2)
"""


class Installation:
    """A home folder with its database, and processes that share it."""

    def __init__(self, home: Path, broker: BrokerProcess) -> None:
        self.home = home
        self.environment = {
            **os.environ,
            "PYTHONPATH": f"{REPOSITORY}:{REPOSITORY / 'platform'}",
            "HIGHWATER_HOME": str(home),
            "HIGHWATER_ENGINE_BOOTSTRAP": broker.address("internal"),
            "HIGHWATER_CLUSTER_SECRET": broker.cluster_secret,
        }
        self._processes: list[subprocess.Popen[bytes]] = []

    def manage(self, *arguments: str) -> None:
        command = [sys.executable, "manage.py", *arguments]
        subprocess.run(command, cwd=REPOSITORY, env=self.environment, check=True, capture_output=True, timeout=60)

    def start_worker(self) -> subprocess.Popen[bytes]:
        return self._celery("worker", "--beat", "--concurrency", "1")

    def _celery(self, *arguments: str) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "celery", "--app", "control_plane.celery", *arguments]
        with (self.home / "worker.log").open("ab") as log:
            process = subprocess.Popen(
                command, cwd=REPOSITORY, env=self.environment, stdout=log, stderr=log, start_new_session=True
            )
        self._processes.append(process)
        return process

    def state_of(self, name: str) -> str | None:
        with sqlite3.connect(self.home / "control-plane.sqlite3", timeout=10) as database:
            row = database.execute("SELECT state FROM topics_topic WHERE name = ?", (name,)).fetchone()
        return None if row is None else str(row[0])

    def wait_for(self, name: str, state: str) -> None:
        self.wait_until(lambda: self.state_of(name) == state, f"{name} is {self.state_of(name)}, not {state}")

    def wait_until(self, is_true: Callable[[], bool], complaint: str) -> None:
        give_up_at = time.monotonic() + WAIT_S_MAX
        while not is_true():
            log = (self.home / "worker.log").read_text()[-3000:]
            assert time.monotonic() < give_up_at, f"{complaint}\n{log}"
            time.sleep(0.05)  # between two looks at the condition

    def end_all(self) -> None:
        for process in self._processes:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
            process.wait(10)


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[BrokerProcess]:
    listeners = {"demo": "PLAINTEXT", "internal": "SASL_PLAINTEXT"}
    with BrokerProcess(tmp_path / "broker", listeners=listeners, settings={"listener.name.demo.tenant": "demo"}) as it:
        yield it


@pytest.fixture
def installation(tmp_path: Path, broker: BrokerProcess) -> Iterator[Installation]:
    made = Installation(tmp_path / "home", broker)
    made.manage("migrate", "-v", "0")
    made.manage("bootstrap_demo")
    yield made
    made.end_all()


def test_what_was_wished_while_nothing_ran_is_there_after_the_start_and_after_a_kill(
    installation: Installation, broker: BrokerProcess
) -> None:
    broker.stop()
    installation.manage("shell", "-c", MAKE_TOPIC.format(name="first"))
    assert installation.state_of("first") == "creating"
    broker.start()
    worker = installation.start_worker()
    installation.wait_for("first", "ready")

    broker.stop()
    installation.manage("shell", "-c", MAKE_TOPIC.format(name="second"))
    os.killpg(worker.pid, signal.SIGKILL)  # with the task in its hands or on its queue
    for message in (installation.home / "celery" / "queue").glob("*.msg"):
        message.unlink()  # the worst case: every message is lost
    broker.start()
    installation.start_worker()
    installation.wait_for("second", "ready")


def test_a_topic_that_a_kafka_client_made_is_adopted_by_beat(installation: Installation, broker: BrokerProcess) -> None:
    from confluent_kafka import Producer

    installation.start_worker()
    producer = Producer({"bootstrap.servers": broker.address("demo")})
    producer.produce("born-on-first-use", b"hello")
    assert producer.flush(20) == 0
    installation.wait_for("born-on-first-use", "ready")
