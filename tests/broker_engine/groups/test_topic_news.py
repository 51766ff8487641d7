"""Why a group rebalances though nobody came or went: other topics asked for, and topics that are not what they were."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

from broker_engine.groups.classic import ClassicGroup
from broker_engine.groups.consumer.assignors.spec import TopicSpec
from broker_engine.groups.consumer_protocol import ProtocolSubscription, ProtocolTopic
from broker_engine.groups.effects import Effect
from broker_engine.groups.settings import GroupSettings
from broker_engine.groups.stored import group_value, restore_group
from broker_engine.groups.timeline import Timeline
from broker_engine.groups.topic_news import NAMED_MAX, TopicNews, TopicWatch, subscription_news
from broker_engine.groups.topic_watch import watch_topics
from broker_engine.names import TOPIC_NAME_LENGTH_MAX
from tests.broker_engine.groups.consumers import ConsumerBench, FakeTopics, settle
from tests.broker_engine.groups.members import INITIAL_DELAY_MS, Bench


def told(*topics: str, held: int = 0) -> bytes:
    """A subscription as clients write it, with what its member holds."""
    owned = [ProtocolTopic(topic="orders", partitions=list(range(held)))] if held else []
    return b"\0\1" + ProtocolSubscription(topics=list(topics), owned_partitions=owned).encode(1)


class Watched(Bench):
    """A classic group whose topics are looked at after whatever happened, as its coordinator does."""

    def __init__(self, **counts: int) -> None:
        super().__init__()
        self.topics = FakeTopics(**counts)
        self.ids: dict[str, str] = {}

    def _take(self, effects: list[Effect]) -> None:
        super()._take(effects)
        watch_topics(self.group, self.topics, self.now_ms)

    def come(self, who: str, metadata: bytes, **more: Any) -> None:
        answer = self.join(who, self.ids.get(who, ""), metadata=metadata, **more)
        if answer is not None:
            self.ids[who] = answer.member_id

    def settle(self) -> None:
        """Everybody that waits is answered, all ask for their part, and it is written."""
        self.ids |= {member.client_id: member.id for member in self.group.members.values()}
        self.answers.clear()
        for who, member_id in self.ids.items():
            self.sync(who, member_id)
        self.stored()
        self.answers.clear()


def readers(*names: str, metadata: bytes = told("orders"), **counts: int) -> Watched:
    bench = Watched(**(counts or {"orders": 2}))
    for name in names:
        bench.come(name, metadata)
    bench.wait(2 * INITIAL_DELAY_MS)
    bench.settle()
    bench.group.timeline.events.clear()
    return bench


def noted(timeline: Timeline) -> list[tuple[str, str, TopicNews]]:
    return [(event.kind.value, event.client_id, event.news) for event in timeline.events]


def partitions(topic: str, before: int, after: int) -> TopicNews:
    return TopicNews(topics=(topic,), partitions_before=before, partitions_after=after)


# --- what is said of it


def test_a_member_asks_for_some_topics_more_and_for_some_no_more() -> None:
    assert subscription_news({"a", "b"}, {"b", "c"}) == TopicNews(topics=("c",), dropped_topics=("a",))


def test_only_a_few_topics_are_named_and_none_that_no_topic_could_be_called() -> None:
    news = subscription_news((), [f"t-{number}" for number in range(NAMED_MAX + 4)])
    assert (news.topics, news.unnamed_count) == (("t-0", "t-1", "t-2"), 4)
    assert subscription_news((), ["x" * (TOPIC_NAME_LENGTH_MAX + 1)]) == TopicNews(unnamed_count=1)


def test_many_topics_that_change_at_once_are_counted() -> None:
    before = {f"t-{number}": None for number in range(NAMED_MAX + 2)}
    after = {name: TopicSpec(UUID(int=1), name, 1) for name in before}
    watch = TopicWatch(seen=before)
    news = watch.look(after, after)
    assert news == [*(partitions(name, 0, 1) for name in ("t-0", "t-1", "t-2")), TopicNews(unnamed_count=2)]
    assert watch.look(after, after) == [], "it is news once"


# --- classic groups


def test_a_topic_that_grew_is_named_when_the_leader_joins_again() -> None:
    bench = readers("a", "b", orders=2, bills=1)
    bench.topics.change(orders=4)
    bench.come("a", told("orders"))
    bench.come("b", told("orders"))
    bench.settle()
    assert noted(bench.group.timeline) == [
        ("rejoined", "a", TopicNews()),
        ("partitions_changed", "", partitions("orders", 2, 4)),
        ("rebalanced", "", TopicNews()),
    ]


@pytest.mark.parametrize(
    ("counts", "changes", "news"),
    [
        ({"orders": 2}, [{"orders": 0}], partitions("orders", 2, 0)),
        ({"bills": 1}, [{"orders": 3}], partitions("orders", 0, 3)),
        ({"orders": 2}, [{"orders": 0}, {"orders": 2}], partitions("orders", 2, 2)),
    ],
    ids=["deleted", "made", "made again"],
)
def test_a_topic_is_made_deleted_or_made_again(
    counts: dict[str, int], changes: list[dict[str, int]], news: TopicNews
) -> None:
    bench = readers("a", **counts)
    for change in changes:
        bench.topics.change(**change)
    bench.come("a", told("orders"))
    assert ("partitions_changed", "", news) in noted(bench.group.timeline)


def test_other_topics_that_change_are_not_the_groups_business() -> None:
    bench = readers("a", orders=2, bills=1)
    bench.topics.change(bills=9)
    bench.come("a", told("orders"))
    bench.settle()
    assert [kind for kind, _, _ in noted(bench.group.timeline)] == ["rejoined", "rebalanced"]


def test_a_member_that_asks_for_other_topics_says_which() -> None:
    bench = readers("a", "b", orders=2, bills=5)
    bench.come("b", told("orders", "bills"))
    bench.come("a", told("orders"))
    bench.settle()
    assert noted(bench.group.timeline) == [
        ("subscription_changed", "b", TopicNews(topics=("bills",))),
        ("rebalanced", "", TopicNews()),
    ], "a topic that nobody asked for before has not changed"


def test_a_member_that_only_tells_what_it_holds_has_not_changed_what_it_asks_for() -> None:
    """A cooperative member writes its partitions beside its topics: its bytes are other ones at each rebalance."""
    bench = readers("a", "b")
    bench.come("b", told("orders", held=1))
    bench.come("a", told("orders", held=1))
    assert noted(bench.group.timeline) == [("rejoined", "b", TopicNews())]


def test_bytes_of_other_programs_changed_and_nobody_knows_what() -> None:
    bench = readers("a", metadata=b"connect's own")
    bench.come("a", b"connect's own, anew")
    assert noted(bench.group.timeline)[0] == ("subscription_changed", "a", TopicNews())


def test_a_static_member_that_comes_back_with_other_topics_says_which() -> None:
    bench = Watched(orders=2)
    bench.come("a", told("orders"), instance="one")
    bench.wait(INITIAL_DELAY_MS)
    bench.settle()
    bench.group.timeline.events.clear()
    bench.ids.clear()
    bench.come("a", told("bills"), instance="one")
    changed = TopicNews(topics=("bills",), dropped_topics=("orders",))
    assert noted(bench.group.timeline) == [("returned", "a", TopicNews()), ("subscription_changed", "a", changed)]


def test_what_happened_while_nobody_was_there_is_no_news() -> None:
    bench = readers("a")
    bench.leave(bench.ids.pop("a"))
    bench.topics.change(orders=8)
    bench.come("a", told("orders"))
    bench.wait(2 * INITIAL_DELAY_MS)
    assert "partitions_changed" not in [kind for kind, _, _ in noted(bench.group.timeline)]


def test_a_new_coordinator_sees_what_changes_after_it_has_looked() -> None:
    before = readers("a")
    bench = Watched(orders=2)
    bench.group = ClassicGroup("readers", GroupSettings())
    restore_group(bench.group, group_value(before.group), 0)
    bench.ids = before.ids
    watch_topics(bench.group, bench.topics, 0)
    bench.topics.change(orders=3)
    bench.come("a", told("orders"))
    assert ("partitions_changed", "", partitions("orders", 2, 3)) in noted(bench.group.timeline)


# --- groups of the consumer protocol


def consumers(*names: str, **fields: Any) -> ConsumerBench:
    bench = ConsumerBench(FakeTopics(orders=2, bills=1))
    for name in names:
        bench.join(name, **fields)
    settle(bench, *names)
    bench.group.timeline.events.clear()
    return bench


def test_the_consumer_protocol_names_the_topic_that_grew() -> None:
    bench = consumers("a", "b")
    bench.topics.change(orders=5)
    settle(bench, "a", "b")
    assert noted(bench.group.timeline) == [
        ("partitions_changed", "", partitions("orders", 2, 5)),
        ("rebalanced", "", TopicNews()),
    ]


def test_a_regular_expression_matches_a_new_topic_and_one_that_is_deleted_no_more() -> None:
    bench = consumers("a", topic_names=frozenset(), topic_regex="ord.*")
    bench.topics.change(ordinals=3)
    settle(bench, "a")
    bench.topics.change(orders=0)
    settle(bench, "a")
    changed = [news for kind, _, news in noted(bench.group.timeline) if kind == "partitions_changed"]
    assert changed == [partitions("ordinals", 0, 3), partitions("orders", 2, 0)]


def test_a_consumer_that_asks_for_other_topics_says_which() -> None:
    bench = consumers("a")
    bench.ask("a", bench.group.members["a"].epoch, topic_names=frozenset({"bills"}))
    assert noted(bench.group.timeline)[0] == (
        "subscription_changed",
        "c",
        TopicNews(topics=("bills",), dropped_topics=("orders",)),
    )
    assert "partitions_changed" not in [kind for kind, _, _ in noted(bench.group.timeline)]


def test_what_one_that_left_had_asked_for_is_not_said_to_be_deleted() -> None:
    bench = consumers("a")
    bench.join("b", "bills")
    settle(bench, "a", "b")
    bench.ask("b", -1)
    bench.topics.change(orders=3)
    settle(bench, "a")
    changed = [news for kind, _, news in noted(bench.group.timeline) if kind == "partitions_changed"]
    assert changed == [partitions("orders", 2, 3)]


def test_a_change_that_the_log_tells_of_has_no_name() -> None:
    bench = consumers("a")
    bench.fail_over()
    bench.topics.change(orders=3)
    bench.ask("a", bench.group.members["a"].epoch)
    assert noted(bench.group.timeline)[0] == ("partitions_changed", "", TopicNews())
