"""A real broker and a real ASGI server for tests, each a process of its own, with two tenants that share topic names.

stack.http(stack.demo)            # httpx client that signs in with the tenant's API key
stack.create_topic(stack.demo, "orders", partitions=2)
stack.websocket_url               # ws://127.0.0.1:PORT/api/v1/ws
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx
import psutil

from tests.broker_engine.broker_process import BrokerProcess
from tests.ports import own_port

REPOSITORY = Path(__file__).resolve().parents[2]
START_TIMEOUT_S = 60.0
PASSWORD = "correct horse battery"
LISTENERS = {"internal": "SASL_PLAINTEXT", "clients": "SASL_PLAINTEXT"}
PREPARE = """
import json, django; django.setup()
from django.core.management import call_command
call_command("migrate", interactive=False, verbosity=0)
from control_plane.accounts.models import User
from control_plane.keys.actions import create_key
from control_plane.tenants.actions import create_tenant
from control_plane.tenants.models import Membership
told = {}
for name in ("demo", "other"):
    tenant = create_tenant(actor="test", tenant_id=name, name=name)
    for role in ("owner", "viewer"):
        user = User.objects.create_user(f"{role}@{name}.example", "correct horse battery")
        Membership.objects.create(tenant=tenant, user=user, role=role)
    key, secret = create_key(actor="test", tenant=tenant, name="test")
    told[name] = {"tenant": name, "key_id": key.id, "secret": secret}
print(json.dumps(told))
"""


@dataclass(frozen=True)
class Account:
    tenant: str
    key_id: str
    secret: str

    @property
    def basic(self) -> httpx.BasicAuth:
        return httpx.BasicAuth(self.key_id, self.secret)


class Stack:
    def __init__(
        self,
        home: Path,
        *,
        listeners: Mapping[str, str] = LISTENERS,
        settings: Mapping[str, str] | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self.home = home
        self.port = own_port()
        self.broker = BrokerProcess(home / "broker", listeners=listeners, settings=settings)
        self._environment = dict(environment or {})
        self.demo = self.other = Account("", "", "")
        self._server: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def websocket_url(self) -> str:
        return f"ws://127.0.0.1:{self.port}/api/v1/ws"

    @property
    def log(self) -> str:
        return (self.home / "web.log").read_text()

    def environment(self) -> dict[str, str]:
        own = {key: value for key, value in os.environ.items() if not key.startswith("HIGHWATER_")}
        return own | {
            "HIGHWATER_HOME": str(self.home),
            "HIGHWATER_ENGINE_BOOTSTRAP": self.broker.address("internal"),
            "HIGHWATER_CLUSTER_SECRET": self.broker.cluster_secret,
            "DJANGO_SETTINGS_MODULE": "control_plane.settings",
            "PYTHONPATH": f"{REPOSITORY}:{REPOSITORY / 'platform'}",
            "PYTHONUNBUFFERED": "1",
            **self._environment,
        }

    def prepare(self) -> None:
        command = [sys.executable, "-c", PREPARE]
        done = subprocess.run(
            command, env=self.environment(), cwd=REPOSITORY, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        told = json.loads(done.stdout.splitlines()[-1])
        self.demo, self.other = Account(**told["demo"]), Account(**told["other"])

    def start_server(self) -> None:
        command = [sys.executable, "-m", "uvicorn", "web.asgi:application", "--port", str(self.port)]
        command += ["--ws", "websockets-sansio", "--lifespan", "on", "--timeout-graceful-shutdown", "5"]
        command += ["--ws-max-size", str(4 << 20)]
        with (self.home / "web.log").open("ab") as log:
            self._server = subprocess.Popen(command, env=self.environment(), cwd=REPOSITORY, stdout=log, stderr=log)
        wait_until(self._is_ready, START_TIMEOUT_S, lambda: self.log)

    def _is_ready(self) -> bool:
        assert self._server is not None
        assert self._server.poll() is None, f"the server ended:\n{self.log}"
        try:
            return httpx.get(f"{self.url}/readyz").status_code == 200
        except httpx.TransportError:
            return False

    def stop_server(self, signal_number: int = signal.SIGTERM) -> int:
        assert self._server is not None
        server, self._server = self._server, None
        server.send_signal(signal_number)
        try:
            return server.wait(20)
        except subprocess.TimeoutExpired:
            server.kill()
            server.wait()
            raise AssertionError(f"the server did not stop:\n{self.log}") from None

    def engine_connection_count(self) -> int:
        """How many connections the server holds to the broker now."""
        assert self._server is not None
        rows = psutil.Process(self._server.pid).net_connections("tcp")
        port = self.broker.port("internal")
        return sum(1 for row in rows if row.raddr and row.raddr[1] == port and row.status == psutil.CONN_ESTABLISHED)

    @contextmanager
    def http(self, account: Account | None = None) -> Iterator[httpx.Client]:
        auth = account.basic if account else None
        with httpx.Client(base_url=f"{self.url}/api/v1", auth=auth, timeout=40) as client:
            yield client

    def create_topic(self, account: Account, name: str, partitions: int = 1, **configs: str) -> str:
        with self.http(account) as client:
            body = {"name": name, "partitions": partitions, "configs": configs}
            answer = client.post("/topics", json=body)
            assert answer.status_code == 201, answer.text
        return name

    @contextmanager
    def running(self) -> Iterator[Stack]:
        self.home.mkdir(parents=True, exist_ok=True)
        with self.broker:
            self.prepare()
            self.start_server()
            try:
                yield self
            finally:
                if self._server is not None:
                    self.stop_server()


def wait_until(condition: Callable[[], bool], timeout_s: float, what_was: Callable[[], str] = str) -> None:
    deadline_s = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline_s, f"it did not come true in {timeout_s} s:\n{what_was()}"
        time.sleep(0.05)
