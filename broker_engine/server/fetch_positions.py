"""Where readers are, as their fetches say: who asks for an offset has been sent all that is below it.

A fetch only leaves its targets here, one entry per connection. Once a second they are gone through, within a budget;
what a connection asked for is kept until it has not fetched for a while. Who a reader is, is said by its client id and
host: that is all that a group's coordinator knows of its members, too. Pure: no clock, no sockets.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol
from uuid import UUID

from broker_engine.names import is_internal_topic
from broker_engine.server.fetch_sessions import Target
from broker_engine.server.local_partition import LocalPartition

TARGETS_PER_TAKE_MAX = 5_000
"""Some milliseconds of the event loop. Where more is fetched, connections take turns."""
POSITIONS_MAX = 50_000
KEPT_MS = 30_000
"""A long poll may take a while; after this the reader has gone."""
SILENT_MS = 5_000
"""Of two connections of one name, one that has been silent for so long while the other fetched is its predecessor."""
SWEEP_MS = 5_000

PartitionId = tuple[UUID, int]


class Connection(Protocol):
    """As far as it matters here: two of them are never equal."""

    peer: str


class Reader(NamedTuple):
    client_id: str
    host: str


_Latest = tuple[str | None, Sequence[Target]]
"""Client id and targets of a connection's last fetch; a plain tuple, since one is made for every fetch."""


@dataclass(slots=True)
class _Position:
    reader: Reader
    offset: int
    seen_ms: int


class ReaderPosition(NamedTuple):
    reader: Reader
    offset: int
    """The lowest, where several connections of the same name ask."""
    connection_count: int


class FetchPositions:
    def __init__(self) -> None:
        self._latest: dict[Connection, _Latest] = {}
        self._known: dict[PartitionId, dict[Connection, _Position]] = {}
        self._count = 0
        self._swept_ms = 0

    def note(self, connection: Connection, client_id: str | None, targets: Sequence[Target]) -> None:
        """On the way of every fetch: nothing is looked at here."""
        self._latest[connection] = (client_id, targets)

    def take(self, now_ms: int) -> list[PartitionId]:
        """Take over what was noted since; which partitions' readers may have changed."""
        changed, budget = dict[PartitionId, None](), TARGETS_PER_TAKE_MAX
        for connection in list(self._latest):
            if budget <= 0:
                break
            latest = self._latest.pop(connection)
            budget -= len(latest[1])
            self._take_over(connection, latest, now_ms, changed)
        if now_ms - self._swept_ms >= SWEEP_MS:
            self._swept_ms = now_ms
            self._forget_gone(now_ms, changed)
        return list(changed)

    def _take_over(
        self, connection: Connection, latest: _Latest, now_ms: int, changed: dict[PartitionId, None]
    ) -> None:
        client_id, targets = latest
        reader = Reader(client_id or "", host_of(connection.peer))
        for target in targets:
            partition = target.partition
            if partition is None or is_internal_topic(partition.name):
                continue
            place = _place(partition)
            known = self._known.setdefault(place, {})
            position = known.get(connection)
            if position is not None:
                position.seen_ms = now_ms
                if position.offset == target.asked.fetch_offset:
                    continue
                position.offset = target.asked.fetch_offset
            elif self._count < POSITIONS_MAX:
                known[connection] = _Position(reader, target.asked.fetch_offset, now_ms)
                self._count += 1
            changed[place] = None

    def _forget_gone(self, now_ms: int, changed: dict[PartitionId, None]) -> None:
        for place, known in list(self._known.items()):
            gone = [connection for connection, it in known.items() if now_ms - it.seen_ms > KEPT_MS]
            for connection in gone:
                del known[connection]
                changed[place] = None
            self._count -= len(gone)
            if not known:
                del self._known[place]

    def readers_of(self, place: PartitionId) -> list[ReaderPosition]:
        found: dict[Reader, list[_Position]] = {}
        for position in self._known.get(place, {}).values():
            found.setdefault(position.reader, []).append(position)
        return [_position_of(reader, found[reader]) for reader in sorted(found)]

    def places(self) -> Iterable[PartitionId]:
        return self._known.keys()


def host_of(peer: str) -> str:
    """As a group's member has it, and Kafka shows it."""
    return f"/{peer.rpartition(':')[0]}"


def _position_of(reader: Reader, positions: list[_Position]) -> ReaderPosition:
    newest_ms = max(position.seen_ms for position in positions)
    current = [position.offset for position in positions if newest_ms - position.seen_ms < SILENT_MS]
    return ReaderPosition(reader, min(current), len(current))


def _place(partition: LocalPartition) -> PartitionId:
    return partition.topic_id, partition.index
