"""Cells of the matrix, played: prepare, let one driver play many features, look from the broker's side."""

from __future__ import annotations

import secrets
import traceback
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tests.compatibility import drivers
from tests.compatibility.checks import check
from tests.compatibility.matrix import CLIENT_OF, FEATURE_OF
from tests.compatibility.observer import Observer
from tests.compatibility.prepare import prepare


@dataclass(frozen=True, slots=True)
class Cell:
    client: str
    feature: str
    verdict: str
    """`passed`, `absent` (the client does not have it), `failed`, `not run` (something is missing on this machine)."""
    why: str = ""
    ms: int = 0


def play(client: str, features: Sequence[str], bootstrap: str, prefix: str | None = None) -> dict[str, Cell]:
    """In topics PREFIX-FEATURE, by default of this run's own. What the client does not have is not asked of it."""
    absent = CLIENT_OF[client].absent
    asked = [key for key in features if key not in absent]
    cells = {key: Cell(client, key, "absent", absent[key]) for key in features if key in absent}
    if asked:
        cells |= _play(client, asked, bootstrap, prefix or f"{client}-{secrets.token_hex(3)}")
    return {key: cells[key] for key in features}


def shortfall(cells: Mapping[str, Cell]) -> dict[str, str]:
    """Why each cell that the client should pass did not: one that was not run shows nothing, so it counts too."""
    return {
        key: f"{cell.verdict}: {cell.why}" for key, cell in cells.items() if cell.verdict not in ("passed", "absent")
    }


def _play(client: str, keys: list[str], bootstrap: str, prefix: str) -> dict[str, Cell]:
    try:
        drivers.command(client)  # builds: before the clock of any feature runs
    except drivers.CannotRun as missing:
        return {key: Cell(client, key, "not run", str(missing)) for key in keys}
    problems = prepare(bootstrap, prefix, keys)
    said = drivers.play(client, bootstrap, prefix, [key for key in keys if key not in problems])
    said |= {key: {"ok": False, "why": why} for key, why in problems.items()}
    observer = Observer(bootstrap)
    return {key: _judge(client, observer, key, f"{prefix}-{key}", said[key]) for key in keys}


def _judge(client: str, observer: Observer, key: str, name: str, answer: Mapping[str, Any]) -> Cell:
    assert key in FEATURE_OF
    if not answer["ok"]:
        return Cell(client, key, "failed", answer["why"], answer.get("ms", 0))
    try:
        check(observer, key, name, answer.get("said") or {})
    except Exception as error:
        return Cell(client, key, "failed", f"on the broker: {error or traceback.format_exc()}", answer["ms"])
    return Cell(client, key, "passed", "", answer["ms"])
