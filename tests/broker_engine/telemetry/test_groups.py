"""Which rows about groups are due: what changed, a last word for what is gone, and questions for the log."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any
from uuid import uuid4

from broker_engine.errors import ErrorCode
from broker_engine.groups.effects import Store
from broker_engine.groups.joining import join
from broker_engine.groups.member import JoinAsk, SyncAsk
from broker_engine.groups.settings import GroupSettings
from broker_engine.groups.shard import GroupShard, NewOffset
from broker_engine.groups.timeline import EventKind
from broker_engine.groups.topic_news import TopicNews
from broker_engine.names import Name
from broker_engine.server.shards import Loaded
from broker_engine.telemetry import groups
from broker_engine.telemetry.groups import GroupTeller
from broker_engine.telemetry.sampler import Sampler
from broker_engine.telemetry.schema import (
    UNREAD_NONE,
    UNREAD_UNKNOWN,
    GroupOffsetRow,
    GroupRow,
    Key,
    Kind,
    Row,
    decode_key,
    decode_row,
    encode_key,
    encode_row,
)

TOPIC_ID = uuid4()
ORDERS = Name("demo", "orders")
NO_TURN = -7


class Coordinator:
    """One shard, and what telemetry says of it tick by tick."""

    def __init__(self) -> None:
        self.loaded: Loaded[GroupShard] = Loaded(4, None, 9, GroupShard(GroupSettings(initial_rebalance_delay_ms=0)))  # type: ignore[arg-type]
        self.teller = GroupTeller(
            self._key, Sampler(30).turn_of, lambda topic_id: ORDERS if topic_id == TOPIC_ID else None
        )
        self.now_ms = 1000

    @property
    def shard(self) -> GroupShard:
        return self.loaded.shard

    def _key(self, kind: Kind, **fields: Any) -> Key:
        return Key(1, 5, kind, **fields)

    def commit(self, offset: int, group: str = "demo/g", topic: str = "demo/orders", partition: int = 0) -> None:
        new = NewOffset(topic, partition, offset, -1, "note", TOPIC_ID)
        for record in self.shard.offset_records(group, [new], self.now_ms):
            self.shard.replay(record.key, record.value, self.now_ms)

    def tick(self, shards: Iterable[Loaded[GroupShard]] | None = None, turn: int = NO_TURN) -> dict[Key, Row]:
        self.teller.follow([self.loaded] if shards is None else shards)
        self.now_ms += 1000
        return {key: row for key, _, row in self.teller.rows(turn, self.now_ms, 0)}

    def offset_rows(self, turn: int = NO_TURN) -> list[GroupOffsetRow]:
        return [row for row in self.tick(turn=turn).values() if isinstance(row, GroupOffsetRow)]

    def group_rows(self) -> list[GroupRow]:
        return [row for row in self.tick().values() if isinstance(row, GroupRow)]


def join_and_sync(coordinator: Coordinator, name: str = "demo/g", assignment: bytes = b"") -> None:
    group = coordinator.shard.classic_or_new(name, 0)
    ask = JoinAsk(
        member_id="",
        instance_id=None,
        client_id="app",
        client_host="/10.0.0.1",
        session_timeout_ms=10_000,
        rebalance_timeout_ms=10_000,
        protocol_type="consumer",
        protocols=(("range", b""),),
        needs_known_id=False,
    )
    join(group, ask, object(), 0, lambda _: "app-1")
    group.on_time(1)
    sync = SyncAsk(member_id="app-1", instance_id=None, generation=1, assignments=(("app-1", assignment),))
    effects = group.sync(sync, object(), 2)
    assert any(isinstance(effect, Store) for effect in effects)
    group.on_stored(1, ErrorCode.NONE, 3)


ORDERS_0_AND_2 = bytes.fromhex("0001000000010006") + b"orders" + bytes.fromhex("000000020000000000000002ffffffff")


def test_a_commit_is_told_once() -> None:
    coordinator = Coordinator()
    coordinator.commit(7)
    coordinator.commit(8)
    [row] = coordinator.offset_rows()
    assert (row.offset, row.commit_count, row.metadata, row.unread_ms) == (8, 2, "note", UNREAD_UNKNOWN)
    assert row.coordinator_epoch == 9
    assert coordinator.tick() == {}


def test_keys_name_group_and_topic_as_their_tenant_does() -> None:
    coordinator = Coordinator()
    coordinator.commit(7)
    coordinator.commit(1, group="operators", topic="demo/orders", partition=3)
    keys = {(key.kind, key.tenant, key.name, key.partition, key.group) for key in coordinator.tick()}
    assert keys == {
        (Kind.GROUP, "demo", "g", -1, ""),
        (Kind.GROUP, "", "operators", -1, ""),
        (Kind.GROUP_OFFSET, "demo", "orders", 0, "g"),
        (Kind.GROUP_OFFSET, "", "demo/orders", 3, "operators"),
    }


def test_a_settled_group_tells_who_owns_what_and_how_it_came_to_it() -> None:
    coordinator = Coordinator()
    join_and_sync(coordinator, assignment=ORDERS_0_AND_2)
    [row] = coordinator.group_rows()
    assert (row.state, row.generation, row.assignor, row.offsets_partition) == ("Stable", 1, "range", 4)
    [member] = row.members
    assert (member.client_id, member.host, member.partitions) == ("app", "/10.0.0.1", {"orders": [0, 2]})
    assert [event.kind for event in row.events] == ["joined", "rebalanced"]


def test_an_event_says_of_which_topics_it_is_and_an_older_brokers_row_is_read_all_the_same() -> None:
    coordinator = Coordinator()
    join_and_sync(coordinator)
    timeline = coordinator.shard.classic_or_new("demo/g", 0).timeline
    grown = TopicNews(topics=("orders",), partitions_before=2, partitions_after=4)
    timeline.note(EventKind.PARTITIONS_CHANGED, 5, 1, news=grown)
    [(key, row)] = coordinator.tick().items()
    assert isinstance(row, GroupRow)
    assert (row.events[-1].topics, row.events[-1].partitions_before, row.events[-1].partitions_after) == (
        ["orders"],
        2,
        4,
    )
    assert (row.events[0].topics, row.events[0].partitions_before) == ([], -1)
    assert decode_row(key.kind, encode_row(row)) == row
    fields = json.loads(encode_row(row))
    for event in fields["events"]:
        for name in ("topics", "dropped_topics", "unnamed_count", "partitions_before", "partitions_after"):
            del event[name]
    older = decode_row(key.kind, json.dumps(fields).encode())
    assert isinstance(older, GroupRow)
    assert older.events[-1].topics == []


def test_bytes_that_are_no_assignment_name_no_partitions() -> None:
    coordinator = Coordinator()
    join_and_sync(coordinator, assignment=b"\x00\x01connect's own")
    assert coordinator.group_rows()[0].members[0].partitions == {}


def test_rows_survive_the_trip() -> None:
    coordinator = Coordinator()
    join_and_sync(coordinator, assignment=ORDERS_0_AND_2)
    coordinator.commit(7)
    for key, row in coordinator.tick().items():
        assert decode_key(encode_key(key)) == key
        assert decode_row(key.kind, encode_row(row)) == row


def test_everything_has_its_turn() -> None:
    coordinator = Coordinator()
    coordinator.commit(7)
    coordinator.tick()
    assert sum(len(coordinator.tick(turn=turn)) for turn in range(30)) == 2


def test_a_deleted_offset_and_its_group_are_gone() -> None:
    coordinator = Coordinator()
    coordinator.commit(7)
    coordinator.tick()
    for record in coordinator.shard.removal("demo/g"):
        coordinator.shard.replay(record.key, record.value, 0)
    coordinator.tick()
    assert {key.kind for key in coordinator.teller.take_gone()} == {Kind.GROUP, Kind.GROUP_OFFSET}
    assert coordinator.teller.take_gone() == []


def test_what_another_coordinator_took_over_is_handed_over_and_not_gone() -> None:
    coordinator = Coordinator()
    coordinator.commit(7)
    coordinator.tick()
    coordinator.tick(shards=[])
    assert coordinator.teller.take_gone() == []
    assert len(coordinator.teller.take_handed_over()) == 2


def test_the_time_of_the_next_record_is_asked_for_until_there_is_one() -> None:
    coordinator = Coordinator()
    coordinator.commit(7)
    coordinator.tick()
    for _ in range(3):
        [(loaded, place, value)] = coordinator.teller.take_questions()
        coordinator.teller.answer(loaded, place, value, UNREAD_NONE)
    assert [row.unread_ms for row in coordinator.offset_rows()] == [UNREAD_NONE]
    coordinator.teller.answer(loaded, place, value, 555)
    assert [row.unread_ms for row in coordinator.offset_rows()] == [555]
    assert coordinator.teller.take_questions() == []


def test_a_commit_that_moved_on_makes_the_old_answer_worthless() -> None:
    coordinator = Coordinator()
    coordinator.commit(7)
    coordinator.tick()
    [question] = coordinator.teller.take_questions()
    coordinator.commit(8)
    coordinator.tick()
    coordinator.teller.answer(*question, 555)
    assert coordinator.offset_rows() == []


def test_the_same_offset_committed_again_keeps_its_answer() -> None:
    coordinator = Coordinator()
    coordinator.commit(7)
    coordinator.tick()
    coordinator.teller.answer(*coordinator.teller.take_questions()[0], 555)
    coordinator.commit(7)
    assert [(row.unread_ms, row.commit_count) for row in coordinator.offset_rows()] == [(555, 2)]


def test_a_group_that_stands_still_is_asked_about_now_and_then() -> None:
    """Retention may take the record away under it."""
    coordinator = Coordinator()
    coordinator.commit(7)
    coordinator.tick()
    coordinator.teller.answer(*coordinator.teller.take_questions()[0], 555)
    coordinator.now_ms += groups.DOUBTED_AFTER_MS + 1
    for turn in range(30):
        coordinator.tick(turn=turn)
    [question] = coordinator.teller.take_questions()
    coordinator.teller.answer(*question, 999)
    assert [row.unread_ms for row in coordinator.offset_rows()] == [999]
    assert coordinator.teller.take_questions() == []


def test_a_tick_tells_of_so_many_and_the_next_of_the_rest(monkeypatch: Any) -> None:
    monkeypatch.setattr(groups, "OFFSETS_PER_TICK_MAX", 3)
    coordinator = Coordinator()
    for partition in range(8):
        coordinator.commit(1, partition=partition)
    assert [len(coordinator.offset_rows()) for _ in range(4)] == [3, 3, 2, 0]


def test_more_offsets_than_are_kept_do_no_harm(monkeypatch: Any) -> None:
    monkeypatch.setattr(groups, "OFFSETS_KEPT_MAX", 2)
    coordinator = Coordinator()
    for partition in range(4):
        coordinator.commit(1, partition=partition)
    assert len(coordinator.offset_rows()) == 2
    coordinator.commit(2)
    assert [row.offset for row in coordinator.offset_rows()] == [2]
