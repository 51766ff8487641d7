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


# Ports of one kind stand in a row, one per broker; the kinds stand apart, so that more brokers move nobody's ports.
DEMO, CLIENTS, INTERNAL, CONTROLLERS = 0, 10, 20, 30
BROKERS_MAX = 9
PORT_SPAN = CONTROLLERS + BROKERS_MAX
REPLICATION_FACTOR_MAX = 3
PURPOSES = {
    DEMO: "Kafka, demo tenant",
    CLIENTS: "Kafka, with API keys",
    INTERNAL: "Kafka, internal",
    CONTROLLERS: "Kafka, between brokers",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class UpOptions:
    home: Path
    http_port: int
    kafka_port: int
    """The first demo listener's; the others follow from it."""
    is_production: bool
    broker_count: int = 3

    @property
    def brokers(self) -> range:
        return range(1, self.broker_count + 1)

    def port(self, kind: int, broker: int) -> int:
        return self.kafka_port + kind + broker - 1

    def addresses(self, kind: int) -> str:
        return ",".join(f"{HOST}:{self.port(kind, broker)}" for broker in self.brokers)

    def broker_directory(self, broker: int) -> Path:
        return self.home / f"broker-{broker}"

    @property
    def replication_factor(self) -> int:
        """The engine's default on a cluster of this size."""
        return min(REPLICATION_FACTOR_MAX, self.broker_count)

    @property
    def secret_file(self) -> Path:
        return self.home / "cluster-secret"

    @property
    def public_url(self) -> str:
        return f"http://127.0.0.1:{self.http_port}"


def broker_name(broker: int) -> str:
    return f"broker-{broker}"


def wanted_ports(options: UpOptions) -> list[tuple[str, int]]:
    kinds = [kind for kind in PURPOSES if kind != DEMO or not options.is_production]
    ports = [
        (f"{PURPOSES[kind]}, broker {broker}", options.port(kind, broker))
        for kind in kinds
        for broker in options.brokers
    ]
    return [("dashboard and REST", options.http_port), *ports]


def environment(options: UpOptions, inherited: Mapping[str, str]) -> dict[str, str]:
    """The environment of `up` itself and of every child. What the user has set stays, but for ports and home."""
    ours = {
        "HIGHWATER_HOME": str(options.home),
        "HIGHWATER_ENGINE_BOOTSTRAP": options.addresses(INTERNAL),
        "PYTHONPATH": _python_path(inherited.get("PYTHONPATH", "")),
        "PYTHONUNBUFFERED": "1",
    }
    defaults = {
        "HIGHWATER_PUBLIC_URL": options.public_url,
        "HIGHWATER_KAFKA_PUBLIC": options.addresses(CLIENTS),
        "HIGHWATER_CLUSTER_SECRET_FILE": str(options.secret_file),
        "DJANGO_SETTINGS_MODULE": "control_plane.settings",
    }
    return {**defaults, **inherited, **ours}


def _python_path(inherited: str) -> str:
    # `platform` is appended, never first: a folder in it must not shadow the standard library.
    wanted = [str(ROOT), str(ROOT / "platform")]
    return ":".join([*wanted, *(part for part in inherited.split(":") if part and part not in wanted)])


def brokers(options: UpOptions, env: Mapping[str, str]) -> list[ChildSpec]:
    return [broker(options, env, number) for number in options.brokers]


def broker(options: UpOptions, env: Mapping[str, str], number: int) -> ChildSpec:
    argv = [sys.executable, "-m", "broker_engine", "serve", "--node-id", str(number)]
    argv += ["--data-dir", str(options.broker_directory(number)), "--quorum", _quorum(options)]
    for name, kind in _listeners(options).items():
        argv += ["--listen", f"{name}={HOST}:{options.port(kind, number)}"]
    for name, value in _broker_settings(options, env).items():
        argv += ["--set", f"{name}={value}"]
    return ChildSpec(broker_name(number), argv, _broker_environment(options, env), log_says("ready node="))


def _quorum(options: UpOptions) -> str:
    return ",".join(f"{number}@{HOST}:{options.port(CONTROLLERS, number)}" for number in options.brokers)


def _broker_environment(options: UpOptions, env: Mapping[str, str]) -> dict[str, str]:
    """In production the engine insists on three replicas of its internal topics. Who asks for fewer brokers there gets
    development's factors and, by name, production's other default."""
    is_small = options.broker_count < REPLICATION_FACTOR_MAX
    return {**env, "HIGHWATER_ENV": "development"} if is_small else dict(env)


def _listeners(options: UpOptions) -> dict[str, int]:
    demo = {} if options.is_production else {"demo": DEMO}
    return {**demo, "clients": CLIENTS, "internal": INTERNAL}


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
