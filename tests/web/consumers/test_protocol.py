"""The WebSocket protocol as conversations: what the client sends, what the server then does."""

from __future__ import annotations

import json
from typing import Any

import pytest

from web.consumers.frames import Offsets, Tail
from web.consumers.protocol import (
    CheckTicket,
    Close,
    CreditAdded,
    Effect,
    Send,
    Session,
    StartReading,
    StartWatching,
    Stop,
)

SUBSCRIBE = {"type": "subscribe", "id": 1, "topic": "orders", "credit": {"records": 10, "bytes": 1000}}


def say(session: Session, **frame: Any) -> list[Effect]:
    return session.on_text(json.dumps(frame))


def sent(effects: list[Effect]) -> dict[str, Any]:
    [effect] = [effect for effect in effects if isinstance(effect, Send)]
    return effect.frame


@pytest.fixture
def session() -> Session:
    session = Session("w1", is_authenticated=True)
    assert sent(say(session, type="hello"))["type"] == "welcome"
    return session


def subscribe(session: Session, **changes: Any) -> StartReading:
    [effect] = say(session, **{**SUBSCRIBE, **changes})
    assert isinstance(effect, StartReading), effect
    return effect


def test_a_key_in_the_header_needs_no_ticket() -> None:
    frame = sent(say(Session("w1", is_authenticated=True), type="hello", client="dashboard/1"))
    limits = {"subscriptions": 32, "frame_bytes": 1 << 20}
    assert frame == {"type": "welcome", "session": "w1", "heartbeat_ms": 20_000, "limits": limits}


def test_a_browser_brings_its_ticket_in_hello() -> None:
    session = Session("w1", is_authenticated=False)
    assert say(session, type="hello", token="t-1") == [CheckTicket("t-1")]
    assert sent(session.on_ticket(True))["type"] == "welcome"


def test_a_used_ticket_closes_with_4401() -> None:
    session = Session("w1", is_authenticated=False)
    say(session, type="hello", token="t-1")
    assert session.on_ticket(False) == [Close(4401, "the ticket is unknown, used or expired")]


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("{", 4400),
        ("[]", 4400),
        ('{"type": 5}', 4400),
        ('{"type": "subscribe"}', 4400),
        ('{"type": "hello", "token": 5}', 4400),
        ('{"type": "hello"}', 4401),
        ('{"type": "hello", "token": NaN}', 4400),
        ('{"type": "hello", "client": "' + "x" * (1 << 20) + '"}', 4413),
        ('{"type": ' + "[" * 20_000, 4400),
    ],
)
def test_a_bad_first_frame_closes(text: str, code: int) -> None:
    [effect] = Session("w1", is_authenticated=False).on_text(text)
    assert isinstance(effect, Close)
    assert effect.code == code


def test_silence_closes_with_4408_but_not_after_hello(session: Session) -> None:
    [effect] = Session("w2", is_authenticated=True).on_hello_missing()
    assert isinstance(effect, Close)
    assert effect.code == 4408
    assert session.on_hello_missing() == []


def test_subscribe_is_carried_out_and_confirmed(session: Session) -> None:
    effect = subscribe(session, start={"tail": 5}, format={"key": "string"})
    assert (effect.sub, effect.request.start, effect.request.partitions) == ("s1", Tail(5), None)
    assert (effect.request.key_format, effect.request.value_format) == ("string", "auto")
    frame = sent(session.on_subscribed("s1", {0: 7}, {0: 12}))
    assert frame == {"type": "subscribed", "id": 1, "sub": "s1", "positions": {"0": "7"}, "hw": {"0": "12"}}


def test_offsets_name_their_partitions(session: Session) -> None:
    request = subscribe(session, start={"offsets": {"2": "9007199254740993", "0": 5}}).request
    assert request.start == Offsets({2: 9007199254740993, 0: 5})
    assert request.partitions == (0, 2)


def test_records_spend_credit_until_there_is_none(session: Session) -> None:
    subscribe(session)
    frame = sent(session.on_records("s1", [{"offset": "7"}] * 10, 600, {0: 17}))
    assert frame["remaining_credit"] == {"records": 0, "bytes": 400}
    assert not session.credit_of("s1").is_open


def test_credit_wakes_a_reader_only_when_both_kinds_are_there(session: Session) -> None:
    subscribe(session, credit={"records": 0, "bytes": 0})
    assert say(session, type="credit", sub="s1", records=5) == []
    assert say(session, type="credit", sub="s1", bytes=500) == [CreditAdded("s1")]
    assert session.credit_of("s1").is_open


def test_a_record_larger_than_the_byte_credit_passes_and_is_paid_back(session: Session) -> None:
    subscribe(session)
    frame = sent(session.on_records("s1", [{}], 5000, {}))
    assert frame["remaining_credit"] == {"records": 9, "bytes": 0}
    assert say(session, type="credit", sub="s1", bytes=4000) == []
    assert say(session, type="credit", sub="s1", bytes=1) == [CreditAdded("s1")]


def test_unsubscribe_ends_it_and_late_records_are_dropped(session: Session) -> None:
    subscribe(session)
    assert say(session, type="unsubscribe", sub="s1") == [Stop("s1"), Send({"type": "unsubscribed", "sub": "s1"})]
    assert session.on_records("s1", [{}], 1, {}) == []
    assert session.on_subscribed("s1", {}, {}) == []


def test_a_failed_subscription_leaves_the_others_alone(session: Session) -> None:
    subscribe(session)
    subscribe(session, id=2)
    effects = session.on_failure("s1", "unknown_topic", "no topic orders", retryable=False)
    assert effects[0] == Stop("s1")
    assert sent(effects) == {
        "type": "error",
        "code": "unknown_topic",
        "message": "no topic orders",
        "retryable": False,
        "id": 1,
        "sub": "s1",
    }
    assert sent(session.on_caught_up("s2")) == {"type": "caught_up", "sub": "s2"}


def test_watch_needs_no_credit(session: Session) -> None:
    [effect] = say(session, type="watch", id="w", topic="orders")
    assert isinstance(effect, StartWatching)
    assert sent(session.on_partitions("s1", "orders", [{"partition": 0}]))["data"] == [{"partition": 0}]
    assert sent(say(session, type="credit", sub="s1", records=1))["code"] == "bad_frame"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"topic": 5}, "topic"),
        ({"topic": ""}, "topic"),
        ({"id": None}, "id"),
        ({"id": True}, "id"),
        ({"start": "beginning"}, "start"),
        ({"start": {"tail": 1001}}, "start.tail"),
        ({"start": {"offsets": {"x": 1}}}, "start.offsets"),
        ({"start": {"offsets": {"0": -1}}}, "start.offsets.0"),
        ({"partitions": []}, "partitions"),
        ({"partitions": ["a"]}, "partitions"),
        ({"format": "avro"}, "format"),
        ({"credit": {"records": -1}}, "credit.records"),
        ({"credit": 5}, "credit"),
        ({"group": "g"}, "group"),
    ],
)
def test_a_bad_field_is_named_and_the_socket_stays_open(
    session: Session, changes: dict[str, Any], message: str
) -> None:
    frame = sent(say(session, **{**SUBSCRIBE, **changes}))
    assert (frame["type"], frame["code"]) == ("error", "bad_frame")
    assert frame["message"].startswith(message)
    assert sent(say(session, type="ping", t=17)) == {"type": "pong", "t": 17}


def test_unknown_types_and_subscriptions_are_errors_not_the_end(session: Session) -> None:
    assert sent(say(session, type="produce", id=4))["code"] == "unknown_type"
    assert sent(say(session, type="credit", sub="s9", records=1))["code"] == "unknown_subscription"
    assert sent(say(session, type="hello"))["code"] == "bad_frame"


def test_the_thirty_third_subscription_is_refused_until_one_ends(session: Session) -> None:
    for number in range(32):
        subscribe(session, id=number)
    assert sent(say(session, **SUBSCRIBE))["code"] == "too_many_subscriptions"
    say(session, type="unsubscribe", sub="s4")
    assert subscribe(session).sub == "s33"


def test_draining_says_goodbye_and_closes_with_4503(session: Session) -> None:
    subscribe(session)
    goodbye, stop, close = session.on_drain()
    assert isinstance(goodbye, Send)
    assert goodbye.frame["type"] == "goodbye"
    assert (stop, close) == (Stop("s1"), Close(4503, "draining"))
    assert say(session, type="ping") == []


def test_lost_rights_close_with_4403(session: Session) -> None:
    effects = session.on_rights_lost()
    assert sent(effects)["reconnect"] is False
    assert effects[-1] == Close(4403, "no longer allowed")
