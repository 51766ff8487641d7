"""What a client that may be killed was told, written down row by row: a file that ends anywhere is still a history.

Commits of group offsets stand beside the rows of `broker_engine.simulator.history`; `group_check` reads them.
"""

from __future__ import annotations

import pickle
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from broker_engine.simulator.history.rows import Op, Partition, Row, RowType


@dataclass(frozen=True, slots=True)
class Asked:
    """A member is about to set its group's offset: if it is killed now, nobody tells what became of it."""

    partition: Partition
    offset: int


@dataclass(frozen=True, slots=True)
class Commit:
    """A member set its group's offset, or tried to."""

    partition: Partition
    offset: int
    invoked: float
    returned: float
    is_ok: bool


@dataclass(frozen=True, slots=True)
class Fetched:
    """A member was told its group's offset, -1 where there is none."""

    partition: Partition
    offset: int
    invoked: float


Entry = Row | Asked | Commit | Fetched


class Journal:
    """One process's own."""

    def __init__(self, path: Path, process: str) -> None:
        self.process = process
        self._file = path.open("ab", buffering=0)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def row(self, f: str, kind: RowType, *ops: Op) -> None:
        self.add(Row(self.process, f, kind, time.monotonic(), ops))

    def add(self, entry: Entry) -> None:
        self._file.write(pickle.dumps(entry))


def read_journal(path: Path) -> Iterator[Entry]:
    """Up to where a kill cut it off."""
    if not path.exists():
        return
    with path.open("rb") as file:
        while True:
            try:
                yield pickle.load(file)
            except (EOFError, pickle.UnpicklingError):
                return
