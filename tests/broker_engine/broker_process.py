"""A real broker for tests: `python -m broker_engine serve` on free ports, in a data directory of the test's own.

    broker = BrokerProcess(tmp_path / "broker", listeners={"clients": "SASL_PLAINTEXT", "demo": "PLAINTEXT"},
                           settings={"listener.name.demo.tenant": "demo"})
    with broker:                         # start() waits for the ready line; leaving kills it
        broker.address("demo")           # "127.0.0.1:40123"
        broker.cluster_secret            # what `gateway` and `control-plane` sign in with on the internal listener

`listeners` maps names to security protocols. The default is one listener `default`, root, without authentication, and
one `internal`. Ports are kept over stop() and start(), so that clients find a restarted broker again. stop() is
SIGTERM and waits for a clean end; kill() is SIGKILL. Nothing here sleeps for a fixed time.
"""

from __future__ import annotations

import os
import selectors
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.ports import own_port

REPOSITORY = Path(__file__).resolve().parents[2]
START_TIMEOUT_S = 30.0
STOP_TIMEOUT_S = 30.0
DEFAULT_LISTENERS = {"default": "PLAINTEXT", "internal": "SASL_PLAINTEXT"}


class BrokerProcess:
    def __init__(
        self,
        data_dir: Path,
        *,
        listeners: Mapping[str, str] | None = None,
        settings: Mapping[str, str] | None = None,
        node_id: int = 1,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self.data_dir = data_dir
        self.node_id = node_id
        self.ready_line = ""
        self._protocols = dict(listeners if listeners is not None else DEFAULT_LISTENERS)
        self.settings = dict(settings or {})
        self._environment = {key: value for key, value in os.environ.items() if not key.startswith("HIGHWATER_")}
        self._environment |= {"PYTHONUNBUFFERED": "1", **(environment or {})}
        self._ports = {name: own_port() for name in self._protocols}
        self._process: subprocess.Popen[str] | None = None
        self.stderr_path = data_dir.with_name(data_dir.name + ".log")

    def address(self, name: str = "default") -> str:
        return f"127.0.0.1:{self._ports[name]}"

    def port(self, name: str = "default") -> int:
        return self._ports[name]

    @property
    def pid(self) -> int:
        assert self._process is not None, "the broker was not started"
        return self._process.pid

    @property
    def cluster_secret(self) -> str:
        return (self.data_dir / "cluster-secret").read_text().strip()

    @property
    def log(self) -> str:
        """What the broker wrote to stderr, over all its starts."""
        return self.stderr_path.read_text() if self.stderr_path.exists() else ""

    def command(self) -> list[str]:
        command = [sys.executable, "-m", "broker_engine", "serve", "--data-dir", str(self.data_dir)]
        command += ["--node-id", str(self.node_id)]
        for name in self._protocols:
            command += ["--listen", f"{name}={self.address(name)}"]
        protocol_map = ",".join(f"{name}:{protocol}" for name, protocol in self._protocols.items())
        for name, value in {"listener.security.protocol.map": protocol_map, **self.settings}.items():
            command += ["--set", f"{name}={value}"]
        return command

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def start(self) -> Self:
        self.launch()
        self.wait_ready()
        return self

    def launch(self) -> None:
        """Begin; a broker of a cluster is ready only when others are there."""
        assert self._process is None, "the broker runs already"
        self.stderr_path.parent.mkdir(parents=True, exist_ok=True)
        with self.stderr_path.open("a") as log:
            self._process = subprocess.Popen(
                self.command(), stdout=subprocess.PIPE, stderr=log, text=True, cwd=REPOSITORY, env=self._environment
            )

    def wait_ready(self) -> None:
        self.ready_line = self._wait_for_ready_line()

    def wait_exit(self) -> int:
        """For a broker that ends by itself: its exit code."""
        assert self._process is not None, "the broker was not started"
        process, self._process = self._process, None
        code = process.wait(STOP_TIMEOUT_S)
        assert process.stdout is not None
        process.stdout.close()
        return code

    def stop(self) -> int:
        """A clean stop; the exit code."""
        return self._end(signal.SIGTERM)

    def kill(self) -> None:
        self._end(signal.SIGKILL)

    def __enter__(self) -> Self:
        return self if self._process is not None else self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._process is not None:
            self.kill()

    def _end(self, signal_number: signal.Signals) -> int:
        assert self._process is not None, "the broker does not run"
        process, self._process = self._process, None
        process.send_signal(signal_number)
        try:
            return process.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            raise AssertionError(f"the broker did not stop in time:\n{self.log}") from None
        finally:
            assert process.stdout is not None
            process.stdout.close()

    def _wait_for_ready_line(self) -> str:
        assert self._process is not None
        assert self._process.stdout is not None
        deadline = time.monotonic() + START_TIMEOUT_S
        with selectors.DefaultSelector() as selector:
            selector.register(self._process.stdout, selectors.EVENT_READ)
            while selector.select(max(0.0, deadline - time.monotonic())):
                line = self._process.stdout.readline()
                if line.startswith("ready "):
                    return line.strip()
                if not line:
                    break
        self.kill()
        raise AssertionError(f"the broker did not become ready:\n{self.log}")
