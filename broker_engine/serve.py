"""The command `serve`: its options become a config, and the broker runs on a loop until a signal stops it."""

from __future__ import annotations

import argparse
import asyncio
import os
import signal
import sys
from pathlib import Path

import uvloop

from broker_engine.config import BrokerConfig, ConfigError, parse_properties
from broker_engine.config.broker import Environment
from broker_engine.security.cluster_secret import ClusterSecretError
from broker_engine.server.broker import Broker, BrokerFailed
from broker_engine.server.open_files import raise_limit

GIL_SWITCH_S = 0.0005
"""How long a thread (compaction, scrubbing, look-ups by time) may keep the event loop waiting. A produce takes the lock
again after each of its system calls: with Python's 5 ms it takes 16 ms and more while a thread works."""


def serve(options: argparse.Namespace) -> str | None:
    """Until it is stopped; the answer is one line about why it could not start or go on."""
    try:
        config = load_config(options)
        sys.setswitchinterval(GIL_SWITCH_S)
        raise_limit()
        uvloop.run(_serve(config, Path(options.data_dir)))
    except (ConfigError, ClusterSecretError, BrokerFailed) as error:
        return str(error)
    return None


def load_config(options: argparse.Namespace) -> BrokerConfig:
    """`--set` and the other options over the file over the defaults."""
    file_values = parse_properties(_read(options.config)) if options.config else {}
    set_values = dict(_split_setting(text) for text in options.set)
    set_values["log.dirs"] = options.data_dir
    if options.listen:
        set_values["listeners"] = ",".join(options.listen)
    if options.node_id is not None:
        set_values["node.id"] = str(options.node_id)
    if options.quorum:
        set_values["controller.quorum.voters"] = options.quorum
    config = BrokerConfig.load(file_values, set_values, _environment())
    if not config.endpoints and config.is_broker:
        raise ConfigError("no listener: give --listen HOST:PORT, for example --listen 127.0.0.1:9092")
    return config


async def _serve(config: BrokerConfig, data_dir: Path) -> None:
    broker = Broker(config, data_dir)
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, broker.request_stop)
    await broker.run(on_ready=_print_ready)


def _print_ready(broker: Broker) -> None:
    listeners = ",".join(str(endpoint) for endpoint in broker.bound_endpoints())
    sys.stdout.write(f"ready node={broker.node_id} cluster={broker.cluster_id} listeners={listeners}\n")
    sys.stdout.flush()


def _split_setting(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals:
        raise ConfigError(f'--set "{text}" is not NAME=VALUE')
    return name.strip(), value.strip()


def _read(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"cannot read --config {path}: {error.strerror}") from None


def _environment() -> Environment:
    match os.environ.get("HIGHWATER_ENV", "development"):
        case "development":
            return "development"
        case "production":
            return "production"
        case other:
            raise ConfigError(f'HIGHWATER_ENV is "{other}": use development or production')
