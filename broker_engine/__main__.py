"""`python -m broker_engine serve`: one broker in the foreground. Only wires: the command line, the loop, the signals.
`dump-log` and `get-offsets` look at a broker's files (tools).

Exit codes: 0 after a clean stop, 1 where it cannot start or go on (one line on stderr says why), 2 for a wrong
command line.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

import uvloop

from broker_engine.config import BrokerConfig, ConfigError, parse_properties
from broker_engine.config.broker import Environment
from broker_engine.security.cluster_secret import ClusterSecretError
from broker_engine.server.broker import Broker, BrokerFailed
from broker_engine.server.open_files import raise_limit
from broker_engine.tools.command_line import add_commands

EXIT_CLEAN, EXIT_ERROR, EXIT_USAGE = 0, 1, 2


GIL_SWITCH_S = 0.0005
"""How long a thread (compaction, scrubbing, look-ups by time) may keep the event loop waiting. A produce takes the lock
again after each of its system calls: with Python's 5 ms it takes 16 ms and more while a thread works."""


def main(arguments: Sequence[str] | None = None) -> int:
    if not __debug__:
        return _fail("python -O removes the checks that guard the log: start without -O and without PYTHONOPTIMIZE")
    options = _parser().parse_args(arguments)
    if "lines" in options:
        return _print_lines(options)
    logging.basicConfig(
        level=options.log_level, stream=sys.stderr, format="%(asctime)s %(levelname)s %(name)s %(message)s"
    )
    try:
        config = load_config(options)
        sys.setswitchinterval(GIL_SWITCH_S)
        raise_limit()
        uvloop.run(_serve(config, Path(options.data_dir)))
    except (ConfigError, ClusterSecretError, BrokerFailed) as error:
        return _fail(str(error))
    return EXIT_CLEAN


def _print_lines(options: argparse.Namespace) -> int:
    try:
        for line in options.lines(options):
            sys.stdout.write(line + "\n")
    except BrokenPipeError:
        sys.stderr.close()  # the reader has seen enough, `| head` for one: nobody is left to tell
    except (OSError, ValueError) as error:
        return _fail(str(error))
    return EXIT_CLEAN


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


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m broker_engine", description=__doc__.partition(":")[2].strip())
    commands = parser.add_subparsers(required=True, metavar="command")
    serve = commands.add_parser("serve", help="run one broker in the foreground")
    serve.add_argument("--data-dir", required=True, metavar="DIR", help="where the broker keeps everything")
    serve.add_argument(
        "--listen",
        action="append",
        default=[],
        metavar="[NAME=]HOST:PORT",
        help="where clients connect; may be given several times",
    )
    serve.add_argument("--node-id", type=int, metavar="N", help="this broker's number (default 1)")
    serve.add_argument("--quorum", metavar="ID@HOST:PORT,...", help="the nodes that elect the controller")
    serve.add_argument("--config", metavar="FILE", help="a .properties file with Kafka's config names")
    serve.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help="one config; may be repeated")
    serve.add_argument("--log-level", default="INFO", choices=["DEBUG", "INFO", "WARNING", "ERROR"])
    add_commands(commands)
    return parser


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


def _fail(line: str) -> int:
    sys.stderr.write(f"broker_engine: {line}\n")
    return EXIT_ERROR


if __name__ == "__main__":
    sys.exit(main())
