"""`python -m broker_engine serve`: one broker in the foreground (serve.py). `dump-log` and `get-offsets` look at a
broker's files (tools). Only the command line is here: what a command needs is loaded when it is run.

Exit codes: 0 after a clean stop, 1 where it cannot start or go on (one line on stderr says why), 2 for a wrong
command line.
"""

from __future__ import annotations

import argparse
import gc
import logging
import sys
from collections.abc import Callable, Sequence

from broker_engine.server.collector import collector_paused
from broker_engine.tools.command_line import add_commands

EXIT_CLEAN, EXIT_ERROR, EXIT_USAGE = 0, 1, 2


def main(arguments: Sequence[str] | None = None) -> int:
    if not __debug__:
        return _fail("python -O removes the checks that guard the log: start without -O and without PYTHONOPTIMIZE")
    options = _parser().parse_args(arguments)
    if "lines" in options:
        return _print_lines(options)
    logging.basicConfig(
        level=options.log_level, stream=sys.stderr, format="%(asctime)s %(levelname)s %(name)s %(message)s"
    )
    problem = _load_serve()(options)
    return EXIT_CLEAN if problem is None else _fail(problem)


def _load_serve() -> Callable[[argparse.Namespace], str | None]:
    """Hundreds of modules, of which nothing is dropped again: the collector looks at them neither now nor later."""
    with collector_paused():
        from broker_engine.serve import serve
    gc.freeze()
    return serve


def _print_lines(options: argparse.Namespace) -> int:
    try:
        for line in options.lines(options):
            sys.stdout.write(line + "\n")
    except BrokenPipeError:
        sys.stderr.close()  # the reader has seen enough, `| head` for one: nobody is left to tell
    except (OSError, ValueError) as error:
        return _fail(str(error))
    return EXIT_CLEAN


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


def _fail(line: str) -> int:
    sys.stderr.write(f"broker_engine: {line}\n")
    return EXIT_ERROR


if __name__ == "__main__":
    sys.exit(main())
