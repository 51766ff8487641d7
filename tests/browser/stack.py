"""One whole Highwater for the browser tests: `manage.py up` in a home of its own, on free ports."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import psutil
from confluent_kafka import KafkaError, Message, Producer

from control_plane.supervisor.plan import CLIENTS, PORT_SPAN
from tests.ports import own_port, own_port_row

REPO_ROOT = Path(__file__).resolve().parents[2]
UP_WITHIN_S = 90
STOPPED_WITHIN_S = 60
SETTINGS_OF_TESTS = ("DJANGO_SETTINGS_MODULE", "HIGHWATER_HOME", "HIGHWATER_DATABASE_URL", "HIGHWATER_REDIS_URL")


def wait_until(is_done: Callable[[], bool], within_s: float, what: str) -> None:
    deadline = time.monotonic() + within_s
    while not is_done():
        assert time.monotonic() < deadline, f"not within {within_s} s: {what}"
        time.sleep(0.1)  # the pause of a poll, not a guess at how long something takes


@dataclass
class Stack:
    home: Path
    http_port: int = field(default_factory=own_port)
    kafka_port: int = field(default_factory=lambda: own_port_row(PORT_SPAN))

    def start(self) -> None:
        command = [sys.executable, "manage.py", "up", "--home", str(self.home)]
        command += ["--http-port", str(self.http_port), "--kafka-port", str(self.kafka_port)]
        env = {name: value for name, value in os.environ.items() if name not in SETTINGS_OF_TESTS}
        self.home.mkdir(parents=True, exist_ok=True)
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(command, cwd=REPO_ROOT, env=env, stdout=log, stderr=subprocess.STDOUT)
        wait_until(self._is_up, UP_WITHIN_S, "Highwater is up")

    def stop(self) -> None:
        self._process.send_signal(signal.SIGTERM)
        self._process.wait(STOPPED_WITHIN_S)

    def manage(self, *arguments: str, **environment: str) -> None:
        """`manage.py` on this stack's own database."""
        command = [sys.executable, "manage.py", *arguments]
        env = {**os.environ, **environment, "HIGHWATER_HOME": str(self.home)}
        subprocess.run(command, cwd=REPO_ROOT, env=env, check=True, capture_output=True, timeout=60)

    def kill_web_server(self) -> None:
        """As the kernel would: no goodbye. The supervisor starts another one."""
        children = psutil.Process(self._process.pid).children(recursive=True)
        [web] = [child for child in children if "uvicorn" in " ".join(child.cmdline())]
        web.kill()

    def kill_broker(self, number: int) -> None:
        """As the kernel would, if it runs. The supervisor starts it again, each time after a longer while."""
        for child in psutil.Process(self._process.pid).children(recursive=True):
            with suppress(psutil.NoSuchProcess, psutil.ZombieProcess):
                if f"broker-{number}" in " ".join(child.cmdline()):
                    child.kill()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.http_port}"

    @property
    def demo_bootstrap(self) -> str:
        """The listener that takes anybody as the demo tenant."""
        return f"127.0.0.1:{self.kafka_port}"

    @property
    def clients_bootstrap(self) -> str:
        return f"127.0.0.1:{self.kafka_port + CLIENTS}"

    @property
    def credentials(self) -> dict[str, str]:
        found: dict[str, str] = json.loads((self.home / "demo-credentials.json").read_text(encoding="utf-8"))
        return found

    @property
    def _log(self) -> Path:
        return self.home / "up.log"

    def _is_up(self) -> bool:
        said = self._log.read_text(encoding="utf-8", errors="replace")
        assert self._process.poll() is None, f"manage.py up ended: {said}"
        return "Highwater is up" in said


def send_records(bootstrap: str, topic: str, values: Iterable[bytes]) -> None:
    """Each value with a key of its own, by an ordinary Kafka client; returns when all are acknowledged."""
    failures: list[KafkaError] = []

    def on_delivery(error: KafkaError | None, message: Message) -> None:
        if error is not None:
            failures.append(error)

    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 5})
    for number, value in enumerate(values):
        producer.produce(topic, key=f"k-{number}".encode(), value=value, on_delivery=on_delivery)
        producer.poll(0)
    assert producer.flush(30) == 0, "records are still unacknowledged"
    assert failures == []
