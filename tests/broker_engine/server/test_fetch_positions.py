"""Where readers are: their fetches say it, and where two have one name nobody guesses."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any
from uuid import UUID, uuid4

from broker_engine.names import Name
from broker_engine.server.fetch_positions import (
    KEPT_MS,
    SILENT_MS,
    TARGETS_PER_TAKE_MAX,
    FetchPositions,
    Reader,
    ReaderPosition,
)
from broker_engine.server.fetch_sessions import Target
from broker_engine.wire.messages.fetch import FetchPartition

TOPIC = uuid4()
PLACE = (TOPIC, 0)
ME = Reader("app", "/10.0.0.1")
ORDERS = Name("demo", "orders")


class Socket:
    def __init__(self, peer: str = "10.0.0.1:4711") -> None:
        self.peer = peer


def target(offset: int, *, index: int = 0, topic_id: UUID = TOPIC, name: Name = ORDERS) -> Target:
    partition: Any = SimpleNamespace(topic_id=topic_id, index=index, name=name)
    return Target(name.name, topic_id, FetchPartition(partition=index, fetch_offset=offset), partition=partition)


def test_a_reader_is_where_its_last_fetch_began() -> None:
    positions, socket = FetchPositions(), Socket()
    positions.note(socket, "app", [target(5)])
    positions.note(socket, "app", [target(9)])
    assert positions.take(1) == [PLACE]
    assert positions.readers_of(PLACE) == [ReaderPosition(ME, 9, 1)]


def test_who_fetches_the_same_again_is_no_news() -> None:
    positions, socket = FetchPositions(), Socket()
    positions.note(socket, "app", [target(5)])
    positions.take(1)
    positions.note(socket, "app", [target(5)])
    assert positions.take(2) == []


def test_a_partition_that_one_fetch_leaves_out_keeps_its_position() -> None:
    positions, socket = FetchPositions(), Socket()
    positions.note(socket, "app", [target(5), target(7, index=1)])
    positions.take(1)
    positions.note(socket, "app", [target(6)])
    positions.take(2)
    assert positions.readers_of((TOPIC, 1))[0].offset == 7


def test_two_connections_of_one_name_are_counted_and_the_slower_one_told() -> None:
    positions = FetchPositions()
    positions.note(Socket(), "app", [target(5)])
    positions.note(Socket("10.0.0.1:4712"), "app", [target(9)])
    positions.take(1)
    assert positions.readers_of(PLACE) == [ReaderPosition(ME, 5, 2)]


def test_a_client_that_came_back_is_soon_one_again() -> None:
    positions, new = FetchPositions(), Socket("10.0.0.1:4712")
    positions.note(Socket(), "app", [target(5)])
    positions.take(0)
    positions.note(new, "app", [target(9)])
    positions.take(SILENT_MS)
    assert positions.readers_of(PLACE) == [ReaderPosition(ME, 9, 1)]


def test_who_has_not_fetched_for_a_while_is_gone() -> None:
    positions = FetchPositions()
    positions.note(Socket(), "app", [target(5)])
    positions.take(0)
    assert positions.take(KEPT_MS + 1) == [PLACE]
    assert positions.readers_of(PLACE) == []


def test_more_than_one_take_may_look_at_waits_for_the_next() -> None:
    positions = FetchPositions()
    for number in range(3):
        many = [target(1, index=index, topic_id=UUID(int=number + 1)) for index in range(TARGETS_PER_TAKE_MAX)]
        positions.note(Socket(f"10.0.0.1:{number}"), "app", many)
    assert [len(positions.take(tick)) for tick in range(4)] == [TARGETS_PER_TAKE_MAX] * 3 + [0]


def test_the_engines_own_topics_are_nobodys_business() -> None:
    positions = FetchPositions()
    positions.note(Socket(), "highwater-live", [target(5, name=Name("", "__telemetry"))])
    assert positions.take(1) == []
