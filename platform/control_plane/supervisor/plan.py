"""What `up` runs: ports, environment and command lines, worked out from the options alone (nothing is started here)."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from control_plane.supervisor.child import ChildSpec
from control_plane.supervisor.ports import HOST
from control_plane.supervisor.readiness import http_answers, log_says

ROOT = Path(__file__).resolve().parents[3]
DEMO_TENANT = "demo"


@dataclass(frozen=True, slots=True, kw_only=True)
class UpOptions:
    home: Path
    http_port: int
    kafka_port: int
    is_production: bool

    @property
    def clients_port(self) -> int:
        return self.kafka_port + 1

    @property
    def internal_port(self) -> int:
        return self.kafka_port + 2

    @property
    def quorum_port(self) -> int:
        return self.kafka_port + 3

    @property
    def secret_file(self) -> Path:
        return self.home / "cluster-secret"

    @property
    def public_url(self) -> str:
        return f"http://127.0.0.1:{self.http_port}"


def wanted_ports(options: UpOptions) -> list[tuple[str, int]]:
    demo = [] if options.is_production else [("Kafka, demo tenant", options.kafka_port)]
    return [
        ("dashboard and REST", options.http_port),
        *demo,
        ("Kafka, with API keys", options.clients_port),
        ("Kafka, internal", options.internal_port),
        ("Kafka, controllers", options.quorum_port),
    ]


def environment(options: UpOptions, inherited: Mapping[str, str]) -> dict[str, str]:
    """The environment of `up` itself and of every child. What the user has set stays, but for ports and home."""
    ours = {
        "HIGHWATER_HOME": str(options.home),
        "HIGHWATER_ENGINE_BOOTSTRAP": f"{HOST}:{options.internal_port}",
        "PYTHONPATH": _python_path(inherited.get("PYTHONPATH", "")),
        "PYTHONUNBUFFERED": "1",
    }
    defaults = {
        "HIGHWATER_PUBLIC_URL": options.public_url,
        "HIGHWATER_KAFKA_PUBLIC": f"{HOST}:{options.clients_port}",
        "HIGHWATER_CLUSTER_SECRET_FILE": str(options.secret_file),
        "DJANGO_SETTINGS_MODULE": "control_plane.settings",
    }
    return {**defaults, **inherited, **ours}


def _python_path(inherited: str) -> str:
    # `platform` is appended, never first: a folder in it must not shadow the standard library.
    wanted = [str(ROOT), str(ROOT / "platform")]
    return ":".join([*wanted, *(part for part in inherited.split(":") if part and part not in wanted)])


def broker(options: UpOptions, env: Mapping[str, str]) -> ChildSpec:
    argv = [sys.executable, "-m", "broker_engine", "serve", "--node-id", "1"]
    argv += ["--data-dir", str(options.home / "broker-1"), "--quorum", f"1@{HOST}:{options.quorum_port}"]
    for name, port in _listeners(options).items():
        argv += ["--listen", f"{name}={HOST}:{port}"]
    for name, value in _broker_settings(options, env).items():
        argv += ["--set", f"{name}={value}"]
    # In production the engine insists on three replicas of its internal topics, which one broker cannot keep. Until
    # `up` runs three, the broker gets development's factors and, by name, production's other default.
    return ChildSpec("broker", argv, {**env, "HIGHWATER_ENV": "development"}, log_says("ready node="))


def _listeners(options: UpOptions) -> dict[str, int]:
    demo = {} if options.is_production else {"demo": options.kafka_port}
    return {**demo, "clients": options.clients_port, "internal": options.internal_port}


def _broker_settings(options: UpOptions, env: Mapping[str, str]) -> dict[str, str]:
    protocols = {"demo": "PLAINTEXT", "clients": "SASL_PLAINTEXT", "internal": "SASL_PLAINTEXT"}
    settings = {
        "listener.security.protocol.map": ",".join(f"{name}:{protocols[name]}" for name in _listeners(options)),
        "cluster.secret.file": env["HIGHWATER_CLUSTER_SECRET_FILE"],
    }
    if options.is_production:
        return {**settings, "auto.create.topics.enable": "false"}
    return {**settings, "listener.name.demo.tenant": DEMO_TENANT}


def web(options: UpOptions, env: Mapping[str, str]) -> ChildSpec:
    argv = [sys.executable, "-m", "uvicorn", "web.asgi:application", "--host", HOST, "--port", str(options.http_port)]
    # The heartbeat: a ping each 20 s, closed when two go unanswered. Frames over 1 MiB are refused by
    # the consumer with its own close code, so the server's limit stands well above it.
    argv += ["--ws", "websockets-sansio", "--ws-ping-interval", "20", "--ws-ping-timeout", "40"]
    argv += ["--ws-max-size", str(4 << 20), "--lifespan", "on", "--no-server-header"]
    argv += ["--timeout-graceful-shutdown", "8", "--log-level", "info"]
    return ChildSpec("web", argv, env, http_answers(HOST, options.http_port, "/healthz"))


def worker(env: Mapping[str, str]) -> ChildSpec:
    # Threads: the tasks wait for the engine and the database, and one process leaves no grandchildren behind.
    argv = [
        *_celery(),
        "worker",
        "--pool",
        "threads",
        "--concurrency",
        "4",
        "--loglevel",
        "INFO",
        "--without-mingle",
        "--without-gossip",
    ]
    return ChildSpec("worker", argv, env, log_says(" ready."))


def beat(options: UpOptions, env: Mapping[str, str]) -> ChildSpec:
    argv = [
        *_celery(),
        "beat",
        "--loglevel",
        "INFO",
        "--pidfile=",
        "--schedule",
        str(options.home / "celery" / "beat-schedule"),
    ]
    return ChildSpec("beat", argv, env, log_says("beat: Starting"))


def _celery() -> list[str]:
    return [sys.executable, "-m", "celery", "--app", "control_plane.celery"]
