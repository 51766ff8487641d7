"""Offsets in transactions: nobody sees them before the marker, and what was written last counts."""

from __future__ import annotations

from uuid import UUID

from broker_engine.groups.records import OffsetKey, OffsetValue, offset_record
from broker_engine.groups.settings import GroupSettings
from broker_engine.groups.shard import GroupShard, NewOffset

DAY_MS = 86_400_000


class Story:
    def __init__(self) -> None:
        self.shard = GroupShard(GroupSettings())

    def commit(self, offset: int | None, group: str = "g", topic: str = "t") -> None:
        value = None if offset is None else OffsetValue(offset=offset, commit_timestamp=1000)
        record = offset_record(OffsetKey(group=group, topic=topic, partition=0), value)
        self.shard.replay(record.key, record.value, 0)

    def commit_in(self, producer_id: int, offset: int, group: str = "g", topic: str = "t") -> None:
        new = NewOffset(topic, 0, offset, -1, "", UUID(int=0))
        for record in self.shard.offset_records(group, [new], 1000):
            self.shard.replay_in_transaction(producer_id, record.key, record.value)

    def end(self, producer_id: int, *, is_commit: bool = True) -> None:
        self.shard.end_transaction(producer_id, is_commit=is_commit)

    def offset(self, group: str = "g", topic: str = "t") -> int | None:
        value = self.shard.committed(group).get((topic, 0))
        return None if value is None else value.offset

    def is_pending(self, group: str = "g", topic: str = "t") -> bool:
        return self.shard.pending.is_pending(group, topic, 0)


def test_an_offset_is_pending_until_its_transaction_commits() -> None:
    story = Story()
    story.commit(3)
    story.commit_in(1, 7)
    assert (story.offset(), story.is_pending()) == (3, True)
    story.end(1)
    assert (story.offset(), story.is_pending()) == (7, False)
    assert not story.shard.pending


def test_an_aborted_transaction_leaves_no_trace() -> None:
    story = Story()
    story.commit_in(1, 7)
    story.end(1, is_commit=False)
    assert (story.offset(), story.is_pending(), story.shard.committed("g")) == (None, False, {})


def test_of_one_transaction_the_last_offset_counts() -> None:
    story = Story()
    story.commit_in(1, 7)
    story.commit_in(1, 9)
    story.end(1)
    assert story.offset() == 9


def test_a_plain_commit_that_came_later_is_not_taken_back_by_a_marker() -> None:
    story = Story()
    story.commit_in(1, 7)
    story.commit(8)
    assert story.is_pending(), "readers of stable offsets wait for the transaction all the same"
    story.end(1)
    assert (story.offset(), story.is_pending()) == (8, False)


def test_of_two_transactions_the_one_that_wrote_last_wins_whichever_ends_first() -> None:
    for ends in ([1, 2], [2, 1]):
        story = Story()
        story.commit_in(1, 7)
        story.commit_in(2, 9)
        for producer_id in ends:
            story.end(producer_id)
        assert story.offset() == 9
    story = Story()
    story.commit_in(1, 7)
    story.commit_in(2, 9)
    story.end(2, is_commit=False)
    story.end(1)
    assert story.offset() == 7


def test_a_group_that_is_deleted_takes_its_pending_offsets_along() -> None:
    story = Story()
    story.commit_in(1, 7)
    story.commit_in(1, 7, group="other")
    for record in story.shard.removal("g"):
        story.shard.replay(record.key, record.value, 0)
    assert not story.is_pending()
    story.end(1)
    assert (story.offset(), story.offset("other")) == (None, 7)


def test_offsets_do_not_expire_under_an_open_transaction() -> None:
    story = Story()
    story.commit(3)
    story.commit(3, topic="other")
    story.commit_in(1, 7)
    expired, _ = story.shard.expired(1000 + DAY_MS, DAY_MS, lambda _group: frozenset())
    assert [record.key for record in expired] == [
        offset_record(OffsetKey(group="g", topic="other", partition=0), None).key
    ]


def test_transactions_of_several_groups_and_partitions_are_kept_apart() -> None:
    story = Story()
    story.commit_in(1, 1, group="a")
    story.commit_in(1, 2, group="b", topic="u")
    story.commit_in(2, 3, group="a", topic="u")
    story.end(1)
    assert (story.offset("a"), story.offset("b", "u"), story.offset("a", "u")) == (1, 2, None)
    assert story.is_pending("a", "u")
