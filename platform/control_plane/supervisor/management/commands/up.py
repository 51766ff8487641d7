"""`manage.py up`: everything that one machine needs, started, watched and stopped by one command."""

from __future__ import annotations

import importlib.util
import os
import sys
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError
from django.db import connections

from control_plane.engine.factory import get_engine
from control_plane.engine.interface import EngineError
from control_plane.refusals import Refusal
from control_plane.supervisor import growth, plan
from control_plane.supervisor.child import Child, ChildSpec
from control_plane.supervisor.demo import prepare_demo, push_identities
from control_plane.supervisor.greeting import greeting
from control_plane.supervisor.plan import UpOptions
from control_plane.supervisor.ports import taken_ports
from control_plane.supervisor.progress import Progress
from control_plane.supervisor.secret_file import ensure_secret
from control_plane.supervisor.watch import StartError, StopRequested, Supervisor
from control_plane.tenants.demo import DemoCredentials

STOP_FIRST = (("web",), ("worker",), ("beat",))
BROKERS_DEFAULT = 3
ELECTED_WITHIN_S = 10.0


class Command(BaseCommand):
    help = "Start brokers, web server, Celery worker and beat; stop them with Ctrl-C."
    requires_system_checks = ()

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--brokers",
            type=int,
            help="how many (default: 3, or as many as there are); over the data of fewer it grows",
        )
        parser.add_argument("--http-port", type=int, default=8000, help="dashboard, REST and WebSocket")
        parser.add_argument(
            "--kafka-port", type=int, default=9092, help="the demo listeners' first; others are 10, 20 and 30 above"
        )
        parser.add_argument("--home", type=Path, help="where data, logs and secrets live (default: HIGHWATER_HOME)")

    def handle(self, *_: Any, **given: Any) -> None:
        options = read_options(given)
        env = plan.environment(options, os.environ)
        become(env)
        refuse_taken_ports(options)
        if not run(options, env, Progress(sys.stdout)):
            sys.exit(1)


def read_options(given: dict[str, Any]) -> UpOptions:
    for name in ("http_port", "kafka_port"):
        if not 1024 <= given[name] <= 65_000:
            raise CommandError(f"--{name.replace('_', '-')} must be between 1024 and 65000")
    home = (given["home"] or settings.HIGHWATER.home).absolute()
    return UpOptions(
        home=home,
        http_port=given["http_port"],
        kafka_port=given["kafka_port"],
        is_production=settings.HIGHWATER.is_production,
        broker_count=count_brokers(home, given["brokers"]),
    )


def count_brokers(home: Path, asked: int | None) -> int:
    there = growth.brokers_there(home)
    if asked is None:
        return max(BROKERS_DEFAULT, there)
    if not 1 <= asked <= plan.BROKERS_MAX:
        raise CommandError(f"--brokers must be between 1 and {plan.BROKERS_MAX}")
    if asked * 2 <= there:
        raise CommandError(
            f"--brokers {asked}: {home} holds a cluster of {there}, and {asked} of them are no majority; drain and "
            f"remove brokers one by one on the dashboard's Cluster page, and delete their directories"
        )
    return asked


def become(env: dict[str, str]) -> None:
    """Django read its settings before our options: where they differ, begin again with these in the environment."""
    if any(os.environ.get(name) != value for name, value in env.items()):
        sys.stdout.flush()
        os.execve(sys.executable, [sys.executable, *sys.orig_argv[1:]], env)  # noqa: S606 - our own command line


def refuse_taken_ports(options: UpOptions) -> None:
    taken = taken_ports(plan.wanted_ports(options))
    if taken:
        hint = "stop it, or choose others with --http-port and --kafka-port"
        raise CommandError("\n".join(f"{port}; {hint}" for port in taken))


def run(options: UpOptions, env: dict[str, str], progress: Progress) -> bool:
    """False when something could not be started. Returns when a stop signal has come and all children are gone."""
    supervisor = Supervisor(progress)
    supervisor.install_signal_handlers()
    try:
        demo = start(supervisor, options, env)
        python = os.path.relpath(sys.executable) if Path(sys.executable).is_relative_to(Path.cwd()) else sys.executable
        has_confluent_kafka = importlib.util.find_spec("confluent_kafka") is not None
        progress.say(greeting(options, demo, python=python, has_confluent_kafka=has_confluent_kafka))
        supervisor.watch()
        progress.say("")
    except StopRequested:
        progress.say("stopped before everything was up")
    except (StartError, EngineError, Refusal) as error:
        progress.say(f"Highwater did not start: {error}")
        return False
    finally:
        supervisor.stop([*STOP_FIRST, [plan.broker_name(number) for number in options.brokers]])
    return True


def start(supervisor: Supervisor, options: UpOptions, env: dict[str, str]) -> DemoCredentials | None:
    def child(spec: ChildSpec) -> Child:
        return Child(spec, options.home / "logs" / f"{spec.name}.log", plan.ROOT)

    progress = supervisor.progress
    progress.say(f"Starting Highwater in {options.home}")
    with progress.step("database"):
        prepare_home(options)
        call_command("migrate", interactive=False, verbosity=0)
    for number in range(options.broker_count + 1, growth.brokers_there(options.home) + 1):
        progress.say(
            f"  {plan.broker_name(number)} stays down: remove it on the Cluster page, then delete its directory"
        )
    brokers_before = growth.brokers_before(options.home)
    supervisor.start(*(child(spec) for spec in plan.brokers(options, env)))
    with progress.step("tenants and keys"):
        demo = None if options.is_production else prepare_demo(options.home)
        if demo is None:
            push_identities()
    growth.grow_topics(options, brokers_before, supervisor)
    connections.close_all()
    supervisor.start(child(plan.web(options, env)), child(plan.worker(env)), child(plan.beat(options, env)))
    with progress.step("leaders"):
        # The first broker that was up leads everything; by itself that evens out only after minutes.
        get_engine().cluster.elect_preferred_leaders(timeout_s=ELECTED_WITHIN_S)
    return demo


def prepare_home(options: UpOptions) -> None:
    options.home.mkdir(mode=0o700, parents=True, exist_ok=True)  # password hashes, records, secrets
    ensure_secret(Path(settings.HIGHWATER.cluster_secret_file))
    (options.home / "celery").mkdir(exist_ok=True)
