"""The matrix of client x feature, played and printed.

python -m tests.compatibility [--clients java-4.3.1,aiokafka] [--features txn,reset-none] [--against kafka] [--write]

Exit code 1 where a cell failed or could not be run. `--against kafka` plays the same on Apache Kafka itself: it shows
that the drivers are right, and where we differ.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import json
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from tests.broker_engine.cluster.cluster_process import ClusterProcess
from tests.compatibility.cells import Cell, play
from tests.compatibility.matrix import CLIENTS, FEATURES
from tests.compatibility.page import legend, problems, text_table, write_page

SETTINGS = {"group.initial.rebalance.delay.ms": "100", "offsets.retention.check.interval.ms": "500"}


@contextlib.contextmanager
def highwater(folder: Path, count: int) -> Iterator[str]:
    with ClusterProcess(folder, count, settings=SETTINGS) as cluster:
        cluster.wait_for_brokers(*range(1, count + 1))
        yield cluster.bootstrap


@contextlib.contextmanager
def kafka(folder: Path) -> Iterator[str]:
    from benchmarks.brokers.kafka import Kafka

    class Peer(Kafka):
        def _properties(self) -> list[str]:
            return [
                *super()._properties(),
                *(f"{name}={value}" for name, value in SETTINGS.items()),
            ]

    with Peer(folder / "kafka") as broker:
        yield broker.bootstrap


def main() -> int:
    arguments = _arguments()
    clients = [client.key for client in CLIENTS if client.key.startswith(arguments.clients)]
    features = [
        feature.key
        for feature in FEATURES
        if feature.key.startswith(arguments.features) and (feature.is_quick or not arguments.quick)
    ]
    cells: dict[tuple[str, str], Cell] = {}
    with tempfile.TemporaryDirectory(prefix="highwater-compat-") as folder:
        side = kafka(Path(folder)) if arguments.against == "kafka" else highwater(Path(folder), arguments.brokers)
        with side as bootstrap:
            for client in clients:
                started = time.monotonic()
                played = play(client, features, bootstrap)
                cells |= {(client, key): cell for key, cell in played.items()}
                passed = sum(cell.verdict == "passed" for cell in played.values())
                took_s = time.monotonic() - started
                print(f"{client}: {passed} of {len(played)} passed in {took_s:.0f} s", file=sys.stderr, flush=True)
    print(text_table(cells, clients, features))
    print("\n".join(["", *legend(cells), "", *problems(cells)]))
    if arguments.json:
        rows = [dataclasses.asdict(cell) for cell in cells.values()]
        Path(arguments.json).write_text(json.dumps(rows))
    is_whole = len(cells) == len(CLIENTS) * len(FEATURES) and arguments.against == "highwater"
    if arguments.write and is_whole:  # a part of it would be taken for all
        write_page(cells, clients, features, f"{arguments.brokers} brokers of Highwater")
    return 1 if problems(cells) else 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--clients", type=_words, default=("",), help="only these, by the beginning of their names")
    parser.add_argument("--features", type=_words, default=("",), help="only these, by the beginning of their names")
    parser.add_argument("--quick", action="store_true", help="one feature of each kind, as in make test")
    parser.add_argument("--against", choices=["highwater", "kafka"], default="highwater")
    parser.add_argument("--brokers", type=int, default=1)
    parser.add_argument("--write", action="store_true", help="write docs/compatibility.md, where all was played")
    parser.add_argument("--json", help="write the cells to this file too")
    return parser.parse_args()


def _words(text: str) -> tuple[str, ...]:
    return tuple(filter(None, text.split(","))) or ("",)


if __name__ == "__main__":
    sys.exit(main())
