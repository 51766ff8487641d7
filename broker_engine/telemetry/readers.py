"""Who reads the partitions that this broker leads, and how far each of them is: rows made of what their fetches say."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from itertools import islice

from broker_engine.server.fetch_positions import FetchPositions
from broker_engine.telemetry.roster import Entry, PartitionId
from broker_engine.telemetry.schema import READERS_TOLD_MAX, Key, Kind, ReaderRow, ReadersRow

ROWS_PER_TICK_MAX = 300
PLACES_MAX = 50_000

MakeKey = Callable[..., Key]


class ReaderTeller:
    def __init__(
        self,
        positions: FetchPositions,
        find: Callable[[PartitionId], Entry | None],
        make_key: MakeKey,
        turn_of: Callable[[Key], int],
    ) -> None:
        self._positions = positions
        self._find = find
        self._make_key = make_key
        self._turn_of = turn_of
        self._keys: dict[PartitionId, tuple[Key, int]] = {}
        self._changed: dict[PartitionId, None] = {}
        self._by_turn: defaultdict[int, dict[PartitionId, None]] = defaultdict(dict)
        self._handed_over: list[Key] = []

    def follow(self, now_ms: int) -> None:
        for place in self._positions.take(now_ms):
            if place in self._keys or len(self._keys) < PLACES_MAX:
                self._changed[place] = None

    def rows(self, turn: int, now_ms: int) -> Iterator[tuple[Key, int, ReadersRow]]:
        changed = list(islice(self._changed, ROWS_PER_TICK_MAX))
        for place in changed:
            del self._changed[place]
        for place in dict.fromkeys((*changed, *list(self._by_turn.get(turn, ())))):
            entry = self._find(place)
            if entry is None or entry.local is None:
                self._drop(place)
                continue
            key, its_turn = self._key_of(place, entry)
            row = self._row(place, entry, now_ms)
            yield key, its_turn, row
            if not row.readers:
                self._drop(place)

    def take_handed_over(self) -> list[Key]:
        handed_over, self._handed_over = self._handed_over, []
        return handed_over

    def _key_of(self, place: PartitionId, entry: Entry) -> tuple[Key, int]:
        known = self._keys.get(place)
        if known is None:
            of = entry.key
            key = self._make_key(Kind.READERS, tenant=of.tenant, name=of.name, partition=of.partition)
            known = self._keys[place] = key, self._turn_of(key)
            self._by_turn[known[1]][place] = None
        return known

    def _drop(self, place: PartitionId) -> None:
        """Nobody reads it any more, which was said, or another broker leads it."""
        key, turn = self._keys.pop(place, (None, 0))
        if key is not None:
            self._by_turn[turn].pop(place, None)
            self._handed_over.append(key)

    def _row(self, place: PartitionId, entry: Entry, now_ms: int) -> ReadersRow:
        found = self._positions.readers_of(place)
        readers = [ReaderRow(*it.reader, it.offset, it.connection_count) for it in found[:READERS_TOLD_MAX]]
        return ReadersRow(now_ms, entry.state.leader_epoch, len(found), readers)
