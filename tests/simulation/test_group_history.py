"""The rules of groups, broken by hand in what members were told: each is seen, and what is allowed is not."""

from __future__ import annotations

import itertools

import pytest

from broker_engine.client import GroupIdentity, TopicPartition
from broker_engine.simulator.group_history import GroupHistory

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)


class Told:
    """Every step takes a second."""

    def __init__(self) -> None:
        self.found: list[str] = []
        self._clock = itertools.count()
        self.history = GroupHistory(lambda rule, text: self.found.append(rule), lambda: float(next(self._clock)))

    def commit(self, who: str, generation: int, offset: int, *, is_answered: bool = True) -> None:
        call = self.history.commit(who, GroupIdentity("g", generation, who), {T0: offset})
        if is_answered:
            self.history.committed(call)

    def read(self, offset: int | None) -> None:
        call = self.history.read("reader", "g", [T0])
        self.history.found(call, {} if offset is None else {T0: offset})

    def assigned(self, who: str, generation: int, *partitions: TopicPartition) -> None:
        self.history.assigned(GroupIdentity("g", generation, who), partitions)

    def taken(self, who: str, epoch: int, *partitions: TopicPartition) -> None:
        self.history.taken(GroupIdentity("g", epoch, who), partitions)

    def broken(self) -> list[str]:
        self.history.check()
        return self.found


@pytest.fixture
def told() -> Told:
    return Told()


def test_two_owners_in_one_generation_are_seen(told: Told) -> None:
    told.assigned("a", 1, T0)
    told.assigned("b", 1, T1)
    assert told.broken() == []
    told.assigned("c", 1, T0)
    assert told.broken() == ["31 one owner in a generation"]


def test_the_next_generation_may_have_another_owner(told: Told) -> None:
    told.assigned("a", 1, T0)
    told.assigned("b", 2, T0)
    assert told.broken() == []


def test_a_commit_of_a_generation_that_is_over_is_seen(told: Told) -> None:
    told.assigned("a", 1, T0)
    told.assigned("b", 2, T0)
    told.commit("a", 1, 5)
    assert told.broken() == ["31 a fenced member cannot commit"]


def test_a_commit_that_was_asked_for_in_time_is_none_of_those(told: Told) -> None:
    told.assigned("a", 1, T0)
    call = told.history.commit("a", GroupIdentity("g", 1, "a"), {T0: 5})
    told.assigned("b", 2, T0)
    told.history.committed(call)
    assert told.broken() == []


def test_an_acknowledged_commit_that_is_gone_is_seen(told: Told) -> None:
    told.commit("a", 1, 5)
    told.read(None)
    assert told.broken() == ["32 committed offsets are linearizable"]


def test_an_offset_that_goes_back_by_itself_is_seen(told: Told) -> None:
    told.commit("a", 1, 5)
    told.commit("a", 1, 6)
    told.read(6)
    told.read(5)
    assert told.broken() == ["32 committed offsets are linearizable"]


def test_a_commit_without_an_answer_may_be_there_or_not_but_does_not_go_again(told: Told) -> None:
    told.commit("a", 1, 5)
    told.commit("a", 1, 6, is_answered=False)
    told.read(5)
    told.read(6)
    assert told.broken() == []
    told.read(5)
    assert told.broken() == ["32 committed offsets are linearizable"]


def test_members_with_epochs_of_their_own_commit_what_they_have(told: Told) -> None:
    told.taken("a", 5, T0)
    told.taken("b", 7, T1)
    told.commit("a", 5, 1)
    assert told.broken() == []


def test_a_commit_for_what_another_member_has_by_now_is_seen(told: Told) -> None:
    told.taken("a", 5, T0)
    told.taken("b", 6, T0)
    told.commit("a", 5, 1)
    assert told.broken() == ["31 a fenced member cannot commit"]


def test_an_answer_that_comes_late_takes_nothing_from_the_next_owner(told: Told) -> None:
    """To a member that was given up meanwhile. Seen as seed 1104044."""
    told.taken("b", 10, T0)
    told.taken("a", 6, T0)
    told.commit("b", 10, 3)
    assert told.broken() == []
