"""Who gets which partitions: everything once, as evenly as may be, and with as few moves as may be."""

from __future__ import annotations

from collections import Counter
from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from broker_engine.groups.consumer.assignors import ASSIGNORS, MemberSpec, TopicSpec
from broker_engine.groups.consumer.assignors.range import assign_ranges
from broker_engine.groups.consumer.assignors.uniform import assign_uniformly
from broker_engine.groups.consumer.partitions import Partitions, count, places


def topics(**counts: int) -> dict[str, TopicSpec]:
    return {name: TopicSpec(UUID(int=1 + ord(name[0])), name, counts[name]) for name in counts}


def readers(names: str, *wanted: str, targets: dict[str, Partitions] | None = None) -> dict[str, MemberSpec]:
    found = targets or {}
    return {name: MemberSpec(frozenset(wanted), found.get(name, {})) for name in names.split()}


def moved(before: dict[str, Partitions], after: dict[str, Partitions]) -> int:
    owner = {place: member for member, held in after.items() for place in places(held)}
    return sum(owner.get(place) != member for member, held in before.items() for place in places(held))


def test_range_gives_every_subscriber_one_run_of_each_topic() -> None:
    assigned = assign_ranges(readers("a b c", "x", "y"), topics(x=7, y=3))
    x, y = UUID(int=1 + ord("x")), UUID(int=1 + ord("y"))
    assert assigned["a"] == {x: frozenset({0, 1, 2}), y: frozenset({0})}
    assert assigned["b"] == {x: frozenset({3, 4}), y: frozenset({1})}
    assert assigned["c"] == {x: frozenset({5, 6}), y: frozenset({2})}


def test_range_keeps_a_static_members_run_under_a_new_id() -> None:
    before = {"m-1": MemberSpec(frozenset({"x"}), instance_id="one"), "m-2": MemberSpec(frozenset({"x"}))}
    after = {"z-9": before["m-1"], "m-2": before["m-2"]}
    assert assign_ranges(before, topics(x=4))["m-1"] == assign_ranges(after, topics(x=4))["z-9"]


def test_more_members_than_partitions_leaves_the_rest_idle() -> None:
    for assign in ASSIGNORS.values():
        held = [count(each) for each in assign(readers("a b c", "x"), topics(x=2)).values()]
        assert sorted(held) == [0, 1, 1]


def test_a_newcomer_takes_only_its_share() -> None:
    before = assign_uniformly(readers("a b", "x"), topics(x=6))
    after = assign_uniformly(readers("a b c", "x", targets=before), topics(x=6))
    assert sorted(count(each) for each in after.values()) == [2, 2, 2]
    assert moved(before, after) == 2


def test_whoever_stays_keeps_everything_when_one_leaves() -> None:
    before = assign_uniformly(readers("a b c", "x"), topics(x=9))
    after = assign_uniformly(readers("a b", "x", targets=before), topics(x=9))
    assert moved({name: before[name] for name in "ab"}, after) == 0
    assert sorted(count(each) for each in after.values()) == [4, 5]


def test_different_subscriptions_are_levelled_as_far_as_they_allow() -> None:
    members = {"a": MemberSpec(frozenset({"x"})), "b": MemberSpec(frozenset({"x", "y"}))}
    assigned = assign_uniformly(members, topics(x=4, y=2))
    assert {name: count(held) for name, held in assigned.items()} == {"a": 3, "b": 3}


def test_a_large_group_that_is_half_deployed_is_levelled_at_once() -> None:
    """A sort of all members for each partition that moves took minutes at this size."""
    known = topics(x=40_000, y=1)
    old = {f"old-{number}": MemberSpec(frozenset("x")) for number in range(5_000)}
    before = assign_uniformly(old, known)
    members = {name: MemberSpec(frozenset("x"), before[name]) for name in old}
    members |= {f"new-{number}": MemberSpec(frozenset("xy")) for number in range(5_000)}
    after = assign_uniformly(members, known)
    assert {count(held) for held in after.values()} == {4, 5}
    assert moved(before, after) <= 20_000, "no more than the share of the new ones"


@given(
    st.dictionaries(st.sampled_from("abcdefgh"), st.frozensets(st.sampled_from("wxyz")), min_size=1),
    st.dictionaries(st.sampled_from("wxyz"), st.integers(1, 9)),
)
def test_no_partition_is_better_off_with_another_of_its_readers(
    wanted: dict[str, frozenset[str]], counts: dict[str, int]
) -> None:
    known = topics(**counts)
    assigned = assign_uniformly({member: MemberSpec(each) for member, each in wanted.items()}, known)
    for name, topic in known.items():
        holders = [count(held) for held in assigned.values() if topic.id in held]
        able = [count(assigned[member]) for member, each in wanted.items() if name in each]
        assert not able or max(holders) - min(able) < 2


def test_a_topic_that_is_not_there_and_a_deleted_one_are_nobodys() -> None:
    gone = {"a": {UUID(int=99): frozenset({0})}}
    for assign in ASSIGNORS.values():
        assert assign(readers("a", "absent", targets=dict(gone)), {}) == {"a": {}}


@given(
    st.dictionaries(st.sampled_from("abcdefgh"), st.frozensets(st.sampled_from("xyz")), min_size=1),
    st.dictionaries(st.sampled_from("xyz"), st.integers(1, 9)),
    st.sampled_from(sorted(ASSIGNORS)),
    st.dictionaries(st.sampled_from("abcdefgh"), st.frozensets(st.sampled_from("xyz"))),
)
def test_every_partition_that_somebody_reads_has_one_owner_that_reads_it(
    wanted: dict[str, frozenset[str]], counts: dict[str, int], name: str, later: dict[str, frozenset[str]]
) -> None:
    known = topics(**counts)
    assigned = ASSIGNORS[name]({member: MemberSpec(each) for member, each in wanted.items()}, known)
    check(assigned, wanted, known)
    after = {**wanted, **later}
    again = ASSIGNORS[name]({who: MemberSpec(each, assigned.get(who, {})) for who, each in after.items()}, known)
    check(again, after, known)


def check(assigned: dict[str, Partitions], wanted: dict[str, frozenset[str]], known: dict[str, TopicSpec]) -> None:
    owners = Counter(place for held in assigned.values() for place in places(held))
    assert set(owners.values()) <= {1}
    read = {name for names in wanted.values() for name in names if name in known}
    assert set(owners) == {(known[name].id, index) for name in read for index in range(known[name].partition_count)}
    by_id = {topic.id: topic.name for topic in known.values()}
    assert all(by_id[topic_id] in wanted[member] for member, held in assigned.items() for topic_id in held)
    if len(set(wanted.values())) == 1:
        loads = [count(held) for held in assigned.values()]
        assert max(loads) - min(loads) <= max(1, len(known)), "range may give the first one more of each topic"
