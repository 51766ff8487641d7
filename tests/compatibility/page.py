"""The matrix as a table: for a terminal, and between the markers of docs/compatibility.md."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.compatibility.cells import Cell
from tests.compatibility.drivers import client_version
from tests.compatibility.matrix import CLIENT_OF, FEATURE_OF

PAGE = Path(__file__).resolve().parents[2] / "docs" / "compatibility.md"
BEGIN, END = "<!-- matrix: written by `make compat` -->", "<!-- end of the matrix -->"
_SHOWN = {"passed": "yes", "absent": "-", "failed": "FAILED", "not run": "not run"}

Cells = Mapping[tuple[str, str], Cell]


def text_table(cells: Cells, clients: Sequence[str], features: Sequence[str]) -> str:
    rows = _rows(cells, clients, features)
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return "\n".join(
        "  ".join(word.ljust(width) for word, width in zip(row, widths, strict=True)).rstrip() for row in rows
    )


def _rows(cells: Cells, clients: Sequence[str], features: Sequence[str]) -> list[list[str]]:
    notes = _notes(cells)
    head = ["", *(CLIENT_OF[client].title for client in clients)]
    return [head, *([_name(key), *(_shown(cells[client, key], notes) for client in clients)] for key in features)]


def _name(key: str) -> str:
    feature = FEATURE_OF[key]
    return f"{feature.kind}: {feature.title}"


def _shown(cell: Cell, notes: Mapping[str, int]) -> str:
    word = _SHOWN[cell.verdict]
    return f"{word} ({notes[cell.why]})" if cell.verdict == "absent" else word


def _notes(cells: Cells) -> dict[str, int]:
    """Each reason once, numbered in the order of its first use."""
    reasons = dict.fromkeys(cell.why for cell in cells.values() if cell.verdict == "absent")
    return {reason: number for number, reason in enumerate(reasons, 1)}


def legend(cells: Cells) -> list[str]:
    return [f"({number}) {reason}" for reason, number in _notes(cells).items()]


def problems(cells: Cells) -> list[str]:
    return [
        f"{cell.client} / {cell.feature}: {cell.verdict}: {_short(cell.why)}"
        for cell in cells.values()
        if cell.verdict not in ("passed", "absent")
    ]


def _short(why: str) -> str:
    """The last line of a trace says what went wrong."""
    return why.strip().splitlines()[-1][:300] if why.strip() else "no reason was given"


def write_page(cells: Cells, clients: Sequence[str], features: Sequence[str], against: str) -> None:
    before, _, rest = PAGE.read_text().partition(BEGIN)
    _, _, after = rest.partition(END)
    PAGE.write_text(f"{before}{BEGIN}\n{_matrix(cells, clients, features, against)}\n{END}{after}")


def _matrix(cells: Cells, clients: Sequence[str], features: Sequence[str], against: str) -> str:
    counts = {verdict: sum(cell.verdict == verdict for cell in cells.values()) for verdict in _SHOWN}
    versions = ", ".join(f"{client} {client_version(client)}" for client in clients if not client.startswith("java-"))
    rows = _rows(cells, clients, features)
    lines = [
        f"Played on {dt.datetime.now(dt.UTC):%Y-%m-%d} against {against}: {len(cells)} cells, "
        f"{counts['passed']} passed, {counts['absent']} that the client does not have, "
        f"{counts['failed']} failed, {counts['not run']} not run.",
        f"Java clients by the version in the heading; {versions}.",
        "",
        "| " + " | ".join(rows[0]) + " |",
        "|---" * len(rows[0]) + "|",
        *("| " + " | ".join(row) + " |" for row in rows[1:]),
        "",
        *(f"{line}  " for line in legend(cells)),
    ]
    return "\n".join([*lines, *_failed(cells)])


def _failed(cells: Cells) -> list[str]:
    told = [f"- {line.splitlines()[0]}" for line in problems(cells)]
    return ["", "What failed:", "", *told] if told else []
