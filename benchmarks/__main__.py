"""`make bench`: Highwater beside Apache Kafka, the same clients, disk and cores; medians, ratios and a picture.

python -m benchmarks [--quick] [--rows a,b] [--rounds N] [--sides highwater] [--data-dir DIR] [--list]
"""

from __future__ import annotations

import argparse
import signal
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.brokers import SIDES, kafka
from benchmarks.report import machine
from benchmarks.report.files import save
from benchmarks.report.lines import lines_of
from benchmarks.report.table import table
from benchmarks.rows import SCENARIOS
from benchmarks.runner import Options, run

QUICK_SCALE = 0.25


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="the main rows at a quarter of their size: five minutes")
    parser.add_argument("--rows", default="", help="only these, by name or its beginning, with commas between")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--scale", type=float, help="work per row, 1 = full size")
    parser.add_argument("--sides", default=",".join(SIDES), help="who is measured (default both)")
    parser.add_argument("--data-dir", type=Path, help="where the brokers keep their data (default: TMPDIR)")
    parser.add_argument("--list", action="store_true", help="say which rows there are")
    return parser.parse_args()


def list_rows() -> None:
    for scenario in SCENARIOS:
        for row in scenario.rows:
            print(f"{row.key:<44} {'quick' if row.is_quick else '':<6} {row.title}")


def main() -> int:
    arguments = parse_arguments()
    if arguments.list:
        list_rows()
        return 0
    sides, keys = arguments.sides.split(","), frozenset(filter(None, arguments.rows.split(",")))
    if "kafka" in sides and not kafka.LIBS.is_dir():
        print("Kafka's jars are missing: run `make kafka-peer` first, or measure alone with --sides highwater")
        return 1
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that brokers and data go too
    scale = arguments.scale or (QUICK_SCALE if arguments.quick else 1.0)
    started = time.perf_counter()
    with tempfile.TemporaryDirectory(prefix="highwater-bench-", dir=arguments.data_dir) as folder:
        options = Options(Path(folder), arguments.rounds, scale, tuple(sides), keys, arguments.quick)
        described = machine.describe(options.data_dir)
        measurements = run(options)
    lines = lines_of(measurements)
    print(f"\n{table(lines)}")
    facts: dict[str, object] = {"rounds": arguments.rounds, "scale": scale, "quick": arguments.quick}
    facts["minutes"] = round((time.perf_counter() - started) / 60, 1)
    paths = save(measurements, lines, described, facts)
    print(f"-- {facts['minutes']} minutes; written: " + ", ".join(str(path) for path in paths))
    return 1 if measurements.failures else 0


if __name__ == "__main__":
    sys.exit(main())
