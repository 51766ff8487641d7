"""A shard of groups: what the log says is what is, live and after a restart."""

from __future__ import annotations

from uuid import uuid4

from broker_engine.groups.classic import GroupSettings
from broker_engine.groups.records import GroupRecord
from broker_engine.groups.shard import GroupShard, NewOffset
from broker_engine.groups.states import GroupState
from broker_engine.groups.stored import group_value
from tests.broker_engine.groups.members import SESSION_MS, stable

TOPIC_ID = uuid4()


def new_offset(partition: int, offset: int) -> NewOffset:
    return NewOffset("orders", partition, offset, 3, "note", TOPIC_ID)


def replayed(*records: GroupRecord, now_ms: int = 0) -> GroupShard:
    shard = GroupShard(GroupSettings())
    for record in records:
        shard.replay(record.key, record.value, now_ms)
    return shard


def test_the_newest_commit_of_each_partition_counts() -> None:
    shard = GroupShard(GroupSettings())
    records = shard.offset_records("g", [new_offset(0, 5), new_offset(1, 7), new_offset(0, 6)], wall_ms=10)
    shard = replayed(*records)
    assert {place: value.offset for place, value in shard.committed("g").items()} == {
        ("orders", 0): 6,
        ("orders", 1): 7,
    }
    value = shard.committed("g")["orders", 0]
    assert (value.leader_epoch, value.metadata, value.commit_timestamp, value.topic_id) == (3, "note", 10, TOPIC_ID)
    assert shard.committed("other") == {}


def test_a_stored_group_comes_back_with_its_members_and_their_parts() -> None:
    bench, ids = stable("a", "b")
    shard = GroupShard(GroupSettings())
    stored = shard.stored_group(bench.group, wall_ms=77)
    found = replayed(stored, now_ms=1_000).group("readers")
    assert found is not None
    assert (found.state, found.generation, found.leader) == (GroupState.STABLE, 1, ids["a"])
    assert [member.assignment for member in found.members.values()] == [b"a", b"b"]
    assert found.next_deadline_ms == 1_000 + SESSION_MS, "they have a session to show that they live"
    assert group_value(found) == group_value(bench.group)


def test_a_group_that_is_removed_leaves_nothing() -> None:
    bench, _ = stable("a")
    shard = GroupShard(GroupSettings())
    written = [shard.stored_group(bench.group, 0), *shard.offset_records("readers", [new_offset(0, 1)], 0)]
    shard = replayed(*written)
    after = replayed(*written, *shard.removal("readers"))
    assert list(after.names()) == []


def test_offsets_expire_when_a_group_was_empty_for_the_whole_time() -> None:
    shard = replayed(*GroupShard(GroupSettings()).offset_records("g", [new_offset(0, 1)], wall_ms=1_000))
    assert shard.expired(wall_ms=1_999, retention_ms=1_000) == []
    expired = shard.expired(wall_ms=2_000, retention_ms=1_000)
    assert [record.value for record in expired] == [None]


def test_offsets_of_a_group_with_members_stay() -> None:
    bench, _ = stable("a")
    shard = GroupShard(GroupSettings())
    stored = [shard.stored_group(bench.group, 0), *shard.offset_records("readers", [new_offset(0, 1)], 0)]
    assert replayed(*stored).expired(wall_ms=10**12, retention_ms=1) == []


def test_an_empty_group_goes_with_its_last_offset_and_by_its_own_time() -> None:
    bench, ids = stable("a")
    bench.leave(ids["a"])
    shard = GroupShard(GroupSettings())
    written = [*shard.offset_records("readers", [new_offset(0, 1)], 0), shard.stored_group(bench.group, 5_000)]
    shard = replayed(*written)
    assert shard.expired(wall_ms=5_500, retention_ms=1_000) == [], "the last member left later than it committed"
    after = replayed(*written, *shard.expired(wall_ms=6_000, retention_ms=1_000))
    assert list(after.names()) == []
