"""The folder of results: NAME.json, NAME.md, NAME.png, where NAME is the time of the run, and the same as `latest`."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks.report import picture
from benchmarks.report.lines import Line
from benchmarks.report.table import markdown
from benchmarks.runner import Measurements

RESULTS = Path(__file__).resolve().parents[1] / "results"


def save(
    measurements: Measurements, lines: Sequence[Line], machine: dict[str, str], run: dict[str, object]
) -> list[Path]:
    RESULTS.mkdir(exist_ok=True)
    base = RESULTS / time.strftime("%Y-%m-%d-%H%M%S")
    described = "; ".join(f"{name} {value}" for name, value in machine.items())
    paths = [base.with_suffix(suffix) for suffix in (".json", ".md", ".png")]
    paths[0].write_text(json.dumps(as_json(measurements, lines, machine, run), indent=1) + "\n")
    paths[1].write_text(markdown(lines, described, measurements.failures))
    subtitle = f"Kafka {machine['Kafka']}, {machine['cpu']}, {machine['memory']}, {run['rounds']} rounds; | = the bar"
    picture.draw(lines, subtitle, paths[2])
    for path in paths:
        shutil.copyfile(path, RESULTS / f"latest{path.suffix}")
    return paths


def as_json(
    measurements: Measurements, lines: Sequence[Line], machine: dict[str, str], run: dict[str, object]
) -> dict[str, object]:
    return {
        "machine": machine,
        "run": run,
        "lines": [_line_as_json(line) for line in lines],
        "rounds": measurements.rounds,
        "failures": measurements.failures,
    }


def _line_as_json(line: Line) -> dict[str, object]:
    return {
        "row": line.row.key,
        "title": line.row.title,
        "client_bound": line.row.is_client_bound,
        "metric": line.metric,
        "kafka": line.kafka,
        "highwater": line.ours,
        "ratio": line.ratio,
        "bar": None if line.bar is None else str(line.bar),
        "verdict": line.verdict,
    }
