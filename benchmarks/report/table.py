"""The table, for a terminal and as Markdown."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.report.lines import HEADINGS, Line

CLIENT_BOUND_MARK = " *"
NOTE = "* client-bound: the client takes most of a core, so read the CPU more than the rate"


def table(lines: Sequence[Line]) -> str:
    rows = [HEADINGS, *_cells(lines)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(HEADINGS))]
    text = [
        "  ".join(cell.ljust(width) if column < 2 or column > 4 else cell.rjust(width)
                  for column, (cell, width) in enumerate(zip(row, widths, strict=True))).rstrip()
        for row in rows
    ]  # fmt: skip
    return "\n".join([text[0], "-" * len(text[0]), *text[1:], "", NOTE, summary(lines)])


def markdown(lines: Sequence[Line], machine: str, failures: Sequence[str]) -> str:
    rows = [HEADINGS, ("---", "---", "---:", "---:", "---:", "---", "---"), *_cells(lines)]
    text = ["# Highwater beside Apache Kafka", "", machine, "", summary(lines), ""]
    text += [f"| {' | '.join(row)} |" for row in rows]
    text += ["", NOTE.replace("*", "\\*", 1)]
    text += ["", "Failed:", *(f"- {failure.splitlines()[-1]}" for failure in failures)] if failures else []
    return "\n".join(text) + "\n"


def _cells(lines: Sequence[Line]) -> list[tuple[str, ...]]:
    """A row's title stands only on its first line."""
    cells, previous = [], ""
    for line in lines:
        title, *rest = line.cells()
        shown = title + (CLIENT_BOUND_MARK if line.row.is_client_bound else "")
        cells.append((shown if line.row.key != previous else "", *rest))
        previous = line.row.key
    return cells


def summary(lines: Sequence[Line]) -> str:
    judged = [line for line in lines if line.verdict in ("ok", "SHORT")]
    met = sum(line.verdict == "ok" for line in judged)
    return f"{met} of {len(judged)} bars met; medians over rounds, ratio = Highwater / Kafka"
