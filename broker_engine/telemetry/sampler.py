"""Decides what goes into `__telemetry`: each second what changed, and everything once per snapshot interval, spread
over it.

Pure: rows in, encoded records out. The newest row of a key is the truth, so a reader that joins late has the whole
picture after one snapshot interval.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable
from dataclasses import fields, replace
from operator import attrgetter

from broker_engine.telemetry.schema import (
    ROW_OF_KIND,
    BrokerRow,
    ClusterRow,
    Key,
    Row,
    TenantRow,
    encode_key,
    encode_row,
)

EncodedRecord = tuple[bytes, bytes]

EVERY_TICK = -1
"""The turn of a row that is a sign of life too."""


_SAID = {
    row_type: attrgetter(*(each.name for each in fields(row_type) if each.name != "at_ms"))
    for row_type in ROW_OF_KIND.values()
}


def _is_same(old: Row | None, new: Row) -> bool:
    """But for the time."""
    said = _SAID[type(new)]
    return old is not None and bool(said(old) == said(new))


class Sampler:
    def __init__(self, ticks_per_snapshot: int) -> None:
        self._ticks_per_snapshot = max(1, ticks_per_snapshot)
        self._tick = 0
        self._last: dict[Key, Row] = {}

    def turn_of(self, key: Key) -> int:
        """At which tick of every interval this key is written whether it changed or not."""
        return zlib.crc32(encode_key(key)) % self._ticks_per_snapshot

    def is_turn(self, turn: int) -> bool:
        return turn in (EVERY_TICK, self.turn)

    @property
    def turn(self) -> int:
        return self._tick % self._ticks_per_snapshot

    def sample(self, rows: Iterable[tuple[Key, int, Row]]) -> list[EncodedRecord]:
        """One tick: of (key, its turn, row) those that are new, changed, or have their turn."""
        records = []
        for key, turn, row in rows:
            if self.is_turn(turn) or not _is_same(self._last.get(key), row):
                self._last[key] = row
                records.append((encode_key(key), encode_row(row)))
        self._tick += 1
        return records

    def drop(self, key: Key) -> None:
        """Somebody else tells of this from now on."""
        self._last.pop(key, None)

    def forget(self, key: Key, now_ms: int) -> list[EncodedRecord]:
        """A last row for what is no longer there, so that readers drop it."""
        row = self._last.pop(key, None)
        if row is None:
            return []
        assert not isinstance(row, TenantRow | BrokerRow | ClusterRow), "these never go"
        return [(encode_key(key), encode_row(replace(row, at_ms=now_ms, is_deleted=True)))]
