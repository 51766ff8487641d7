"""What patterns of members may cost: each name is matched once, and where the broker matches ahead, nowhere else."""

from __future__ import annotations

import pytest

from broker_engine.errors import BrokerError, ErrorCode
from broker_engine.groups.consumer.change import Change, Now
from broker_engine.groups.consumer.heartbeat import heartbeat
from broker_engine.groups.consumer.member import HeartbeatAsk
from broker_engine.groups.consumer.regex import check_regex, match_all, matching
from tests.broker_engine.groups.consumers import ConsumerBench, FakeTopics

HOSTILE = "(?:a?){300}(?:a?){300}(?:a?){300}$b"
"""Ten milliseconds and more for a long name, however short it is itself."""


def ask(member_id: str, epoch: int, pattern: str | None = None) -> HeartbeatAsk:
    return HeartbeatAsk(
        member_id=member_id,
        epoch=epoch,
        client_id="c",
        client_host="/h",
        rebalance_timeout_ms=1_000 if pattern else -1,
        topic_regex=pattern,
        owned={},
    )


def test_a_pattern_that_grows_too_large_is_refused() -> None:
    with pytest.raises(BrokerError) as refused:
        check_regex(r"\pL{1,100}")
    assert refused.value.code is ErrorCode.INVALID_REGULAR_EXPRESSION
    check_regex("|".join(f"a-topic-of-the-service-{number}" for number in range(150)))


def test_a_hostile_pattern_is_matched_once_however_often_members_come_and_go() -> None:
    """Minutes if every change of the group matched again, here and in groups of their own."""
    bench = ConsumerBench(FakeTopics(**{f"{'a' * 240}{number:05}": 1 for number in range(20)}))
    bench.join("m", topic_names=None, topic_regex=HOSTILE)
    for number in range(150):
        bench.join(f"other-{number}", topic_names=None, topic_regex=HOSTILE)
        bench.ask(f"other-{number}", -1)
    for _ in range(150):
        other = ConsumerBench(bench.topics)
        other.join("m", topic_names=None, topic_regex=HOSTILE)
    assert bench.group.regexes[HOSTILE].topics == ()


def test_what_was_not_matched_ahead_waits_for_the_next_heartbeat() -> None:
    bench = ConsumerBench(FakeTopics(orders_eu=1))
    bench.join("m", topic_names=None, topic_regex="orders_.*")
    bench.topics.change(orders_us=1)
    now = Now(bench.now_ms, bench.now_ms)
    unmatched = Change(bench.group, bench.topics, now, {})
    heartbeat(unmatched, ask("m", bench.group.epoch))
    bench.keep(unmatched)
    assert bench.group.regexes["orders_.*"].topics == ("orders_eu",)
    due = bench.group.patterns_due(bench.topics.version)
    assert due == {"orders_.*"}
    matched = Change(bench.group, bench.topics, now, match_all(due, bench.topics.short_names()))
    heartbeat(matched, ask("m", bench.group.epoch))
    bench.keep(matched)
    assert bench.group.regexes["orders_.*"].topics == ("orders_eu", "orders_us")
    assert bench.group.patterns_due(bench.topics.version) == frozenset()


def test_a_new_pattern_is_the_only_one_that_is_due_while_topics_stay_the_same() -> None:
    bench = ConsumerBench(FakeTopics(orders_eu=1, bills=1))
    bench.join("m", topic_names=None, topic_regex="orders_.*")
    change = Change(bench.group, bench.topics, Now(0, 0), {"bill.*": matching("bill.*", ["bills"])})
    heartbeat(change, ask("n", 0, "bill.*"))
    assert {name: each.topics for name, each in change.group.regexes.items()} == {
        "orders_.*": ("orders_eu",),
        "bill.*": ("bills",),
    }
    assert change.group.topics_seen is bench.topics.version
