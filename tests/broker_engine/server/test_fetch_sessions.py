"""The cache of fetch sessions: who gets one, who loses one, and what the next request may be."""

from __future__ import annotations

import pytest

from broker_engine.clock import SystemRandomness
from broker_engine.errors import BrokerError, ErrorCode
from broker_engine.ids import NO_TOPIC_ID
from broker_engine.security.principal import Principal
from broker_engine.server import fetch_sessions
from broker_engine.server.fetch_sessions import EVICTION_MS, FetchSession, FetchSessions, Target
from broker_engine.wire.messages.fetch import FetchPartition

ALICE, BOB = Principal("acme", "alice"), Principal("acme", "bob")


def targets(count: int = 1, topic: str = "orders") -> list[Target]:
    return [Target(topic, NO_TOPIC_ID, FetchPartition(partition=index)) for index in range(count)]


def cache(slot_count: int = 8) -> FetchSessions:
    return FetchSessions(slot_count, SystemRandomness())


def opened(sessions: FetchSessions, owner: Principal = ALICE, now_ms: int = 0) -> FetchSession:
    session = sessions.open(owner, targets(), uses_topic_ids=False, now_ms=now_ms)
    assert session is not None
    return session


def code_of(sessions: FetchSessions, session_id: int, owner: Principal) -> ErrorCode:
    with pytest.raises(BrokerError) as caught:
        sessions.find(session_id, owner, 0)
    return caught.value.code


def test_a_session_is_its_owners_alone() -> None:
    sessions = cache()
    session = opened(sessions)
    assert sessions.find(session.id, ALICE, 0) is session
    assert code_of(sessions, session.id, BOB) is ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    sessions.close(session.id, BOB)
    assert sessions.find(session.id, ALICE, 0) is session
    sessions.close(session.id, ALICE)
    assert code_of(sessions, session.id, ALICE) is ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    assert (len(sessions), sessions.partition_count) == (0, 0)


def test_one_principal_holds_a_quarter_at_most() -> None:
    sessions = cache(slot_count=8)
    for _ in range(2):
        opened(sessions)
    assert sessions.open(ALICE, targets(), uses_topic_ids=False, now_ms=EVICTION_MS - 1) is None
    opened(sessions, BOB)


def test_whoever_was_away_longest_makes_room() -> None:
    sessions = cache(slot_count=8)
    first, second = opened(sessions), opened(sessions)
    sessions.find(first.id, ALICE, 10)
    opened(sessions, now_ms=EVICTION_MS)
    assert code_of(sessions, second.id, ALICE) is ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    assert sessions.find(first.id, ALICE, EVICTION_MS) is first


def test_the_whole_cache_is_bounded() -> None:
    sessions = cache(slot_count=4)
    for number in range(4):
        opened(sessions, Principal("acme", f"key-{number}"))
    assert sessions.open(ALICE, targets(), uses_topic_ids=False, now_ms=0) is None
    assert sessions.open(ALICE, targets(), uses_topic_ids=False, now_ms=EVICTION_MS) is not None
    assert len(sessions) == 4


def test_no_slots_mean_no_sessions() -> None:
    assert cache(slot_count=0).open(ALICE, targets(), uses_topic_ids=False, now_ms=0) is None


def test_partitions_are_bounded_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetch_sessions, "PARTITIONS_MAX", 5)
    sessions = cache()
    assert sessions.open(ALICE, targets(6), uses_topic_ids=False, now_ms=0) is None
    session = sessions.open(ALICE, targets(5), uses_topic_ids=False, now_ms=0)
    assert session is not None
    with pytest.raises(BrokerError):
        sessions.add(session, targets(1, "more")[0])
    assert (len(sessions), sessions.partition_count) == (0, 0)


def test_a_name_that_no_topic_can_have_is_not_remembered() -> None:
    assert cache().open(ALICE, targets(1, "x" * 10_000), uses_topic_ids=False, now_ms=0) is None


def test_epochs_follow_each_other_and_wrap_to_one() -> None:
    session = opened(cache())
    for epoch in (1, 2, 3):
        session.begin(epoch, uses_topic_ids=False)
    with pytest.raises(BrokerError) as caught:
        session.begin(3, uses_topic_ids=False)
    assert caught.value.code is ErrorCode.INVALID_FETCH_SESSION_EPOCH
    session.next_epoch = 2**31 - 1
    session.begin(2**31 - 1, uses_topic_ids=False)
    session.begin(1, uses_topic_ids=False)


def test_a_session_does_not_change_between_names_and_ids() -> None:
    session = opened(cache())
    with pytest.raises(BrokerError) as caught:
        session.begin(1, uses_topic_ids=True)
    assert caught.value.code is ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR
    session.begin(1, uses_topic_ids=False)
