"""The command line of the tools: arguments in, lines out. Each is loaded when it is run: `serve` starts here too."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path


def add_commands(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """`dump-log` and `get-offsets`; `options.lines` then is the function that gives the lines to print."""
    dump_log = commands.add_parser("dump-log", help="print batches and records of a segment, or entries of an index")
    dump_log.add_argument("files", nargs="+", type=Path, metavar="FILE")
    dump_log.set_defaults(lines=_dump_all)
    offsets = commands.add_parser("get-offsets", help="print log start, high watermark and log end per partition")
    offsets.add_argument("--data-dir", required=True, type=Path, metavar="DIR")
    offsets.add_argument("topic", nargs="?", help="only this one; a tenant's as TENANT/TOPIC")
    offsets.set_defaults(lines=_list_offsets)


def _dump_all(options: argparse.Namespace) -> Iterator[str]:
    from broker_engine.tools.dump_log import dump

    for path in options.files:
        yield f"-- {path}"
        yield from dump(path)


def _list_offsets(options: argparse.Namespace) -> Iterator[str]:
    from broker_engine.tools.get_offsets import UNKNOWN, get_offsets

    yield f"{'topic':40} {'partition':>9} {'log start':>12} {'high watermark':>14} {'log end':>12}"
    for row in get_offsets(options.data_dir, options.topic):
        watermark = "-" if row.high_watermark == UNKNOWN else str(row.high_watermark)
        yield f"{row.topic:40} {row.partition:9} {row.log_start_offset:12} {watermark:>14} {row.log_end_offset:12}"
