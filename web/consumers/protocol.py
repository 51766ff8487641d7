"""The server's side of `highwater.v1.json`, without I/O: frames and events in, effects out.

One Session per socket. The consumer carries the effects out in order and reports back what came of them.
Credit is the only thing that lets records flow: a subscription without it asks for nothing, so the log is the buffer.
A batch may overdraw the byte credit by its last record, else a record larger than the credit could never be sent.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

from web.consumers import frames
from web.consumers.frames import FRAME_BYTES_MAX, AnyWatch, ClientId, Frame, FrameError, NotAFrame, Subscribe

SUBSCRIPTIONS_MAX = 32
HEARTBEAT_MS = 20_000
HELLO_WITHIN_S = 10.0


class CloseCode:
    BAD_FRAME = 4400
    NOT_AUTHENTICATED = 4401
    DENIED = 4403
    NO_HELLO = 4408
    FRAME_TOO_BIG = 4413
    DRAINING = 4503


@dataclass(frozen=True, slots=True)
class Send:
    frame: Frame


@dataclass(frozen=True, slots=True)
class Close:
    code: int
    reason: str


@dataclass(frozen=True, slots=True)
class CheckTicket:
    """Answered by `on_ticket`."""

    ticket: str


@dataclass(frozen=True, slots=True)
class StartReading:
    """Answered by `on_subscribed`, then `on_records`, or `on_failure`."""

    sub: str
    request: Subscribe


@dataclass(frozen=True, slots=True)
class StartWatching:
    """Answered by `on_subscribed` and `on_partitions`, `on_group` or `on_groups`, or `on_failure`."""

    sub: str
    request: AnyWatch


@dataclass(frozen=True, slots=True)
class Stop:
    """End whatever serves this subscription."""

    sub: str


@dataclass(frozen=True, slots=True)
class CreditAdded:
    sub: str


Effect = Send | Close | CheckTicket | StartReading | StartWatching | Stop | CreditAdded


class Phase(Enum):
    HELLO = "hello"
    CHECKING = "checking"
    OPEN = "open"
    CLOSED = "closed"


NEXT_PHASES = {
    Phase.HELLO: {Phase.CHECKING, Phase.OPEN, Phase.CLOSED},
    Phase.CHECKING: {Phase.OPEN, Phase.CLOSED},
    Phase.OPEN: {Phase.CLOSED},
    Phase.CLOSED: {Phase.CLOSED},
}


@dataclass(slots=True)
class Credit:
    records: int
    bytes: int

    @property
    def is_open(self) -> bool:
        return self.records > 0 and self.bytes > 0

    def add(self, records: int, size_bytes: int) -> None:
        self.records = min(frames.CREDIT_MAX, self.records + records)
        self.bytes = min(frames.CREDIT_MAX, self.bytes + size_bytes)

    def spend(self, records: int, size_bytes: int) -> None:
        assert records <= self.records, "more records were read than the client has asked for"
        self.records -= records
        self.bytes -= size_bytes


@dataclass(slots=True)
class Subscription:
    id: ClientId
    credit: Credit | None  # None: a watch, which needs no credit since only the newest state is kept


class Session:
    def __init__(self, session_id: str, *, is_authenticated: bool) -> None:
        self.session_id = session_id
        self.phase = Phase.HELLO
        self._is_authenticated = is_authenticated
        self._subscriptions: dict[str, Subscription] = {}
        self._last_sub = 0

    # -- from the client

    def on_text(self, text: str) -> list[Effect]:
        if self.phase is Phase.CLOSED:
            return []
        if len(text) > FRAME_BYTES_MAX or len(text.encode("utf-8", "replace")) > FRAME_BYTES_MAX:
            return self._close(CloseCode.FRAME_TOO_BIG, f"a frame holds at most {FRAME_BYTES_MAX} bytes")
        try:
            frame = frames.parse_frame(text)
        except NotAFrame as error:
            return self._close(CloseCode.BAD_FRAME, str(error))
        return self._on_frame(frame)

    def on_bytes(self) -> list[Effect]:
        if self.phase is Phase.CLOSED:
            return []
        return self._close(CloseCode.BAD_FRAME, "frames of this subprotocol are text")

    def _on_frame(self, frame: Frame) -> list[Effect]:
        if self.phase is not Phase.OPEN and frame["type"] != "hello":
            return self._close(CloseCode.BAD_FRAME, "the first frame must be hello")
        handle = _HANDLERS.get(frame["type"])
        try:
            if handle is None:
                raise FrameError(f"unknown type {frame['type'][:40]!r}", "unknown_type")
            return handle(self, frame)
        except FrameError as error:
            return self._refuse(frame, error)

    def _refuse(self, frame: Frame, error: FrameError) -> list[Effect]:
        if self.phase is not Phase.OPEN:
            return self._close(CloseCode.BAD_FRAME, error.message)
        # Echo only what could be the client's own reference, never an arbitrary value of its frame.
        known = {name: frame[name] for name in ("id", "sub") if isinstance(frame.get(name), (str, int))}
        return [Send(_error(error.code, error.message, retryable=False, **known))]

    def _on_hello(self, frame: Frame) -> list[Effect]:
        ticket = frames.parse_hello(frame)
        if self.phase is not Phase.HELLO:
            raise FrameError("hello was said already")
        if self._is_authenticated:
            return self._welcome()
        if ticket is None:
            return self._close(CloseCode.NOT_AUTHENTICATED, "hello needs a ticket as token, or the socket an API key")
        self._move_to(Phase.CHECKING)
        return [CheckTicket(ticket)]

    def _on_subscribe(self, frame: Frame) -> list[Effect]:
        request = frames.parse_subscribe(frame)
        sub = self._add(Subscription(request.id, Credit(request.credit_records, request.credit_bytes)))
        return [StartReading(sub, request)]

    def _on_watch(self, frame: Frame) -> list[Effect]:
        request = frames.parse_watch(frame)
        return [StartWatching(self._add(Subscription(request.id, None)), request)]

    def _on_credit(self, frame: Frame) -> list[Effect]:
        added = frames.parse_credit(frame)
        credit = self._known(added.sub).credit
        if credit is None:
            raise FrameError("a watch takes no credit")
        credit.add(added.records, added.bytes)
        return [CreditAdded(added.sub)] if credit.is_open else []

    def _on_unsubscribe(self, frame: Frame) -> list[Effect]:
        sub = frames.parse_unsubscribe(frame)
        self._known(sub)
        del self._subscriptions[sub]
        return [Stop(sub), Send({"type": "unsubscribed", "sub": sub})]

    def _on_ping(self, frame: Frame) -> list[Effect]:
        return [Send({"type": "pong", "t": frames.parse_ping(frame)})]

    def _add(self, subscription: Subscription) -> str:
        if len(self._subscriptions) >= SUBSCRIPTIONS_MAX:
            raise FrameError(f"at most {SUBSCRIPTIONS_MAX} subscriptions per socket", "too_many_subscriptions")
        self._last_sub += 1
        sub = f"s{self._last_sub}"
        self._subscriptions[sub] = subscription
        return sub

    def _known(self, sub: str) -> Subscription:
        if sub not in self._subscriptions:
            raise FrameError("no such subscription", "unknown_subscription")
        return self._subscriptions[sub]

    # -- from the server

    def on_ticket(self, is_valid: bool) -> list[Effect]:
        if self.phase is not Phase.CHECKING:
            return []
        if not is_valid:
            return self._close(CloseCode.NOT_AUTHENTICATED, "the ticket is unknown, used or expired")
        return self._welcome()

    def on_hello_missing(self) -> list[Effect]:
        if self.phase not in (Phase.HELLO, Phase.CHECKING):
            return []
        return self._close(CloseCode.NO_HELLO, f"no hello within {HELLO_WITHIN_S:.0f} s")

    def on_subscribed(self, sub: str, positions: Mapping[int, int], high_watermarks: Mapping[int, int]) -> list[Effect]:
        subscription = self._subscriptions.get(sub)
        if subscription is None:
            return []
        frame = {"type": "subscribed", "id": subscription.id, "sub": sub}
        return [Send({**frame, "positions": _texts(positions), "hw": _texts(high_watermarks)})]

    def credit_of(self, sub: str) -> Credit:
        """What may be read now. A subscription that has ended has none."""
        subscription = self._subscriptions.get(sub)
        return (subscription.credit if subscription else None) or Credit(0, 0)

    def on_records(
        self, sub: str, batch: Sequence[Frame], size_bytes: int, high_watermarks: Mapping[int, int]
    ) -> list[Effect]:
        if sub not in self._subscriptions:
            return []
        credit = self.credit_of(sub)
        credit.spend(len(batch), size_bytes)
        left = {"records": credit.records, "bytes": max(0, credit.bytes)}
        frame: Frame = {"type": "records", "sub": sub, "batch": list(batch), "hw": _texts(high_watermarks)}
        return [Send({**frame, "remaining_credit": left})]

    def on_caught_up(self, sub: str) -> list[Effect]:
        return [Send({"type": "caught_up", "sub": sub})] if sub in self._subscriptions else []

    def on_partitions(self, sub: str, topic: str, rows: Sequence[Frame]) -> list[Effect]:
        frame: Frame = {"type": "partitions", "sub": sub, "topic": topic, "data": list(rows)}
        return [Send(frame)] if sub in self._subscriptions else []

    def on_group(self, sub: str, group: str, page: Frame) -> list[Effect]:
        frame: Frame = {"type": "group", "sub": sub, "group": group, "data": page}
        return [Send(frame)] if sub in self._subscriptions else []

    def on_groups(self, sub: str, rows: Sequence[Frame]) -> list[Effect]:
        return [Send({"type": "groups", "sub": sub, "data": list(rows)})] if sub in self._subscriptions else []

    def on_failure(self, sub: str, code: str, message: str, *, retryable: bool) -> list[Effect]:
        """The subscription is over; the socket and its other subscriptions go on."""
        subscription = self._subscriptions.pop(sub, None)
        if subscription is None:
            return []
        return [Stop(sub), Send(_error(code, message, retryable=retryable, id=subscription.id, sub=sub))]

    def on_drain(self) -> list[Effect]:
        if self.phase is Phase.CLOSED:
            return []
        farewell: Frame = {"type": "goodbye", "reason": "the server is shutting down", "reconnect": True}
        return [Send(farewell), *self._close(CloseCode.DRAINING, "draining")]

    def on_rights_lost(self) -> list[Effect]:
        if self.phase is Phase.CLOSED:
            return []
        farewell: Frame = {"type": "goodbye", "reason": "the key or the membership is gone", "reconnect": False}
        return [Send(farewell), *self._close(CloseCode.DENIED, "no longer allowed")]

    def _welcome(self) -> list[Effect]:
        self._move_to(Phase.OPEN)
        limits = {"subscriptions": SUBSCRIPTIONS_MAX, "frame_bytes": FRAME_BYTES_MAX}
        return [Send({"type": "welcome", "session": self.session_id, "heartbeat_ms": HEARTBEAT_MS, "limits": limits})]

    def _close(self, code: int, reason: str) -> list[Effect]:
        self._move_to(Phase.CLOSED)
        ended = [Stop(sub) for sub in self._subscriptions]
        self._subscriptions.clear()
        return [*ended, Close(code, reason)]

    def _move_to(self, phase: Phase) -> None:
        assert phase in NEXT_PHASES[self.phase], f"{self.phase.name} -> {phase.name}"
        self.phase = phase


_HANDLERS: dict[str, Callable[[Session, Frame], list[Effect]]] = {
    "hello": Session._on_hello,
    "subscribe": Session._on_subscribe,
    "watch": Session._on_watch,
    "credit": Session._on_credit,
    "unsubscribe": Session._on_unsubscribe,
    "ping": Session._on_ping,
}


def _error(code: str, message: str, *, retryable: bool, **reference: Any) -> Frame:
    return {"type": "error", "code": code, "message": message, "retryable": retryable, **reference}


def _texts(numbers: Mapping[int, int]) -> dict[str, str]:
    return {str(partition): str(offset) for partition, offset in numbers.items()}
