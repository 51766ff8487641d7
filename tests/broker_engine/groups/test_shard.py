"""A shard of groups: what the log says is what is, live and after a restart."""

from __future__ import annotations

from uuid import uuid4

from broker_engine.groups.classic import ClassicGroup
from broker_engine.groups.consumer.group import ConsumerGroup
from broker_engine.groups.consumer.records import encode
from broker_engine.groups.records import GroupRecord, group_record
from broker_engine.groups.settings import GroupSettings
from broker_engine.groups.shard import GroupShard, NewOffset
from broker_engine.groups.states import GroupState
from broker_engine.groups.stored import group_value
from tests.broker_engine.groups.consumers import ConsumerBench
from tests.broker_engine.groups.members import SESSION_MS, stable

TOPIC_ID = uuid4()


def new_offset(partition: int, offset: int) -> NewOffset:
    return NewOffset("orders", partition, offset, 3, "note", TOPIC_ID)


def replayed(*records: GroupRecord, now_ms: int = 0) -> GroupShard:
    shard = GroupShard(GroupSettings())
    for record in records:
        shard.replay(record.key, record.value, now_ms)
    return shard


def expired(shard: GroupShard, *, wall_ms: int, topics: frozenset[str] | None = None) -> list[GroupRecord]:
    return shard.expired(wall_ms, 1_000, lambda _group: topics)[0]


def consumer_records(*members: str) -> list[GroupRecord]:
    bench = ConsumerBench()
    for member in members:
        bench.join(member)
    return [GroupRecord(*encode(record)) for record in bench.log]


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
    assert isinstance(found, ClassicGroup)
    assert (found.state, found.generation, found.leader) == (GroupState.STABLE, 1, ids["a"])
    assert [member.assignment for member in found.members.values()] == [b"a", b"b"]
    assert group_value(found) == group_value(bench.group)


def test_loading_takes_nothing_from_anybodys_session() -> None:
    bench, ids = stable("a", "b")
    shard = replayed(GroupShard(GroupSettings()).stored_group(bench.group, wall_ms=77), now_ms=1_000)
    ready_ms = 1_000 + 3 * SESSION_MS
    shard.begin_here(ready_ms)
    group = shard.group("readers")
    assert isinstance(group, ClassicGroup)
    assert group.next_deadline_ms == ready_ms + SESSION_MS
    group.on_time(ready_ms)
    assert list(group.members) == list(ids.values())


def test_a_group_that_is_removed_leaves_nothing() -> None:
    bench, _ = stable("a")
    shard = GroupShard(GroupSettings())
    written = [shard.stored_group(bench.group, 0), *shard.offset_records("readers", [new_offset(0, 1)], 0)]
    shard = replayed(*written)
    after = replayed(*written, *shard.removal("readers"))
    assert list(after.names()) == []


def test_offsets_expire_when_a_group_was_empty_for_the_whole_time() -> None:
    shard = replayed(*GroupShard(GroupSettings()).offset_records("g", [new_offset(0, 1)], wall_ms=1_000))
    assert expired(shard, wall_ms=1_999) == []
    assert [record.value for record in expired(shard, wall_ms=2_000)] == [None]


def test_a_commit_on_its_way_to_the_log_is_not_followed_by_its_own_removal() -> None:
    shard = replayed(*GroupShard(GroupSettings()).offset_records("g", [new_offset(0, 1)], wall_ms=1_000))
    commit, end = shard.offset_records("g", [new_offset(0, 900)], wall_ms=2_000), shard.begin_commit("g")
    another_end = shard.begin_commit("g")
    written = [*commit, *expired(shard, wall_ms=2_001)]
    for record in written:
        shard.replay_offset(record.key, record.value)
    end()
    assert shard.committed("g")["orders", 0].offset == 900
    assert expired(shard, wall_ms=10_000) == [], "another one is under way"
    another_end()
    assert len(expired(shard, wall_ms=10_000)) == 1


def test_a_commit_that_says_how_long_it_counts_expires_by_that_and_is_stored_so() -> None:
    """OffsetCommit up to version 4 can; the record is Kafka's version 1, which alone has room for it."""
    brief = NewOffset("orders", 0, 1, 3, "note", TOPIC_ID, retention_ms=50)
    (record,) = GroupShard(GroupSettings()).offset_records("g", [brief], wall_ms=1_000)
    assert record.value is not None
    assert record.value[:2] == b"\x00\x01"
    shard = replayed(record)
    assert expired(shard, wall_ms=1_049) == []
    assert [removed.value for removed in expired(shard, wall_ms=1_050)] == [None]


def test_a_commit_that_counts_longer_than_a_record_can_say_counts_that_long() -> None:
    forever = NewOffset("orders", 0, 1, 3, "note", TOPIC_ID, retention_ms=(1 << 63) - 1)
    shard = replayed(*GroupShard(GroupSettings()).offset_records("g", [forever], wall_ms=1_000))
    assert shard.committed("g")["orders", 0].expire_timestamp == (1 << 63) - 1
    assert expired(shard, wall_ms=1 << 60) == []


def test_offsets_of_a_group_with_members_stay() -> None:
    bench, _ = stable("a")
    shard = GroupShard(GroupSettings())
    stored = [shard.stored_group(bench.group, 0), *shard.offset_records("readers", [new_offset(0, 1)], 0)]
    assert expired(replayed(*stored), wall_ms=10**12) == [], "its members' bytes do not tell what they read"
    assert expired(replayed(*stored), wall_ms=10**12, topics=frozenset({"orders"})) == []
    assert len(expired(replayed(*stored), wall_ms=10**12, topics=frozenset({"bills"}))) == 1


def test_an_empty_group_goes_with_its_last_offset_and_by_its_own_time() -> None:
    bench, ids = stable("a")
    bench.leave(ids["a"])
    shard = GroupShard(GroupSettings())
    written = [*shard.offset_records("readers", [new_offset(0, 1)], 0), shard.stored_group(bench.group, 5_000)]
    shard = replayed(*written)
    assert expired(shard, wall_ms=5_500) == [], "the last member left later than it committed"
    after = replayed(*written, *expired(shard, wall_ms=6_000))
    assert list(after.names()) == []


def test_a_group_of_the_consumer_protocol_comes_back_and_goes_with_its_removal() -> None:
    written = consumer_records("a", "b")
    shard = replayed(*written)
    group = shard.group("readers")
    assert isinstance(group, ConsumerGroup)
    assert list(group.members) == ["a", "b"]
    after = replayed(*written, *shard.removal("readers"))
    assert list(after.names()) == []


def test_a_converted_group_is_of_the_protocol_that_the_log_ends_with() -> None:
    bench, _ = stable("a")
    classic = GroupShard(GroupSettings()).stored_group(bench.group, 0)
    upgraded = [classic, group_record("readers", None), *consumer_records("a")]
    assert isinstance(replayed(*upgraded).group("readers"), ConsumerGroup)
    downgraded = [*upgraded, *replayed(*upgraded).group_removal("readers"), classic]
    assert isinstance(replayed(*downgraded).group("readers"), ClassicGroup)


def test_an_empty_group_of_the_consumer_protocol_goes_with_its_last_offset() -> None:
    bench = ConsumerBench()
    bench.join("a")
    bench.ask("a", -1)
    written = [GroupRecord(*encode(record)) for record in bench.log]
    shard = replayed(*written, *GroupShard(GroupSettings()).offset_records("readers", [new_offset(0, 1)], 5_000))
    assert expired(shard, wall_ms=5_500) == []
    records, gone = shard.expired(6_000, 1_000, lambda _group: frozenset())
    assert gone == ["readers"]
    assert len(records) == 3, "the offset, the target's epoch, the group"


def test_what_compaction_left_behind_of_a_group_that_is_gone_makes_no_group() -> None:
    tombstones = [GroupRecord(record.key, None) for record in consumer_records("a")]
    assert list(replayed(*tombstones).names()) == []


def test_a_tenants_groups_are_found_without_looking_at_those_of_others() -> None:
    bench, _ = stable("a")
    shard = GroupShard(GroupSettings())
    offsets = {name: shard.offset_records(name, [new_offset(0, 1)], 0) for name in ("acme/one", "globex/one", "one")}
    shard = replayed(*(record for records in offsets.values() for record in records))
    shard.groups["acme/two"] = bench.group
    shard.classic_or_new("acme/one", 0)
    assert sorted(shard.names_of("acme")) == ["acme/one", "acme/two"]
    assert (list(shard.names_of("globex")), list(shard.names_of(""))) == (["globex/one"], ["one"])
    for record in shard.removal("globex/one"):
        shard.replay(record.key, record.value, 0)
    shard.forget("acme/two")
    shard.forget("acme/two")
    assert (list(shard.names_of("acme")), list(shard.names_of("globex"))) == (["acme/one"], [])
    assert sorted(shard.names()) == ["acme/one", "one"]
