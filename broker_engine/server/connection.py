"""One connection: frames in, answers out in the order of the requests, everything bounded.

Like Kafka it takes one request at a time, except that a request which only waits for its acknowledgement lets the
next one begin (docs/differences.md). Muting is `stream.pause()`: the peer's TCP window fills, and nothing is
buffered here. Runs unchanged on any `Stream`, the simulator's too.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Protocol

from broker_engine.clock import Clock
from broker_engine.net.stream import Part, Stream, part_size_bytes, release_all
from broker_engine.server.budget import ByteBudget
from broker_engine.server.framer import Framer, FrameRefused
from broker_engine.server.outcome import HANG_UP, Later, Outcome

log = logging.getLogger(__name__)

REQUESTS_IN_FLIGHT_MAX = 16
READ_AHEAD_BYTES_MAX = 256 * 1024
WRITE_BUFFER_BYTES_MAX = 1024 * 1024
"""More than this waiting for a slow reader: no further request is begun until it has read."""
SMALL_FRAME_BYTES = 64 * 1024
"""Frames up to this size need no reservation: READ_AHEAD_BYTES_MAX bounds them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionTimeouts:
    idle_ms: int = 600_000
    partial_frame_ms: int = 30_000
    authentication_ms: int = 30_000
    slow_reader_ms: int = 30_000


class RequestHandler(Protocol):
    """What stands behind one connection (server/session.py)."""

    @property
    def frame_bytes_max(self) -> int: ...

    @property
    def is_authenticated(self) -> bool: ...

    @property
    def is_welcome(self) -> bool:
        """False once the one who signed in is no longer known."""
        ...

    def on_frame(self, frame: memoryview, following: Iterator[memoryview]) -> tuple[Outcome | Later, int]:
        """Begin a request, and as many of those behind it as have one answer together with it: how many of them."""
        ...


@dataclass(slots=True, eq=False)
class _Slot:
    """The place of one answer in the order of answers."""

    reserved_bytes: int
    request_count: int
    outcome: Outcome | None = None
    task: asyncio.Future[Outcome | Later] | None = None


class Connection:
    def __init__(
        self,
        stream: Stream,
        handler: RequestHandler,
        budget: ByteBudget,
        clock: Clock,
        *,
        timeouts: ConnectionTimeouts,
        on_closed: Callable[[Connection], None],
    ) -> None:
        self.stream = stream
        self._handler = handler
        self._budget = budget
        self._clock = clock
        self._timeouts = timeouts
        self._on_closed = on_closed
        self._framer = Framer()
        self._slots: deque[_Slot] = deque()
        self._in_flight_count = 0  # of requests
        self._exclusive: _Slot | None = None  # no other request begins before this one is answered
        self._reserved_bytes = 0  # for the frame that comes next
        self._is_waiting_for_budget = False
        self._outbox: list[Part] = []
        self._outbox_bytes = 0
        self._is_ending = False  # no further request is begun
        self._is_gone = False
        self._opened_ms = self._last_read_ms = self._last_write_ms = clock.monotonic_ms()
        self._last_write_buffer_bytes = 0

    def start(self) -> None:
        self.stream.start(self._on_bytes, self._on_close, self._pump)

    @property
    def is_idle(self) -> bool:
        return not self._slots

    @property
    def is_welcome(self) -> bool:
        return self._handler.is_welcome

    def finish(self) -> None:
        """For shutdown: begin nothing new, answer what was begun, then close. Long polls are not waited for."""
        self._is_ending = True
        self._cancel_polls()
        if self.is_idle:
            self.stream.close()

    def sweep(self, now_ms: int) -> None:
        """Called from time to time: close who is silent, who never signs in, who never reads."""
        reason = self._overdue(now_ms)
        if reason is not None:
            log.info("closing %s: %s", self.stream.peer, reason)
            self.stream.abort()

    def _overdue(self, now_ms: int) -> str | None:
        silent_ms = now_ms - self._last_read_ms
        if not self._handler.is_authenticated and now_ms - self._opened_ms > self._timeouts.authentication_ms:
            return "no authentication in time"
        if self.is_idle and not self._is_waiting_for_budget:
            if self._framer.is_inside_frame and silent_ms > self._timeouts.partial_frame_ms:
                return "a request that never ended"
            if min(silent_ms, now_ms - self._last_write_ms) > self._timeouts.idle_ms:
                return "idle"
        return "a reader that does not read" if self._is_reader_stuck(now_ms) else None

    def _is_reader_stuck(self, now_ms: int) -> bool:
        waiting_bytes = self.stream.write_buffer_bytes
        if waiting_bytes == 0 or waiting_bytes < self._last_write_buffer_bytes:
            self._last_write_ms = now_ms
        self._last_write_buffer_bytes = waiting_bytes
        return waiting_bytes > 0 and now_ms - self._last_write_ms > self._timeouts.slow_reader_ms

    # --- in

    def _on_bytes(self, data: memoryview) -> None:
        self._last_read_ms = self._clock.monotonic_ms()
        self._framer.feed(data)
        self._pump()

    def _pump(self) -> None:
        """Begin as many requests as may begin, send what they answered, then mute or unmute."""
        is_more_there = True
        while is_more_there and self._may_begin():
            is_more_there = self._begin_ready()
            self._flush_outbox()
        self._flush_outbox()
        self._mute_or_unmute()

    def _begin_ready(self) -> bool:
        """False once there is no whole frame left."""
        while self._may_begin():
            frame = self._next_frame()
            if frame is None:
                return False
            self._begin(frame)
        return True

    def _following(self) -> Iterator[memoryview]:
        """What may begin together with a request that is about to. Large frames come one by one: each has its room."""
        if self._reserved_bytes:
            return iter(())
        return islice(self._framer.following(SMALL_FRAME_BYTES), REQUESTS_IN_FLIGHT_MAX - 1 - self._in_flight_count)

    def _may_begin(self) -> bool:
        return (
            self._exclusive is None
            and not self._is_ending
            and not self._is_waiting_for_budget
            and self._in_flight_count < REQUESTS_IN_FLIGHT_MAX
            and self.stream.write_buffer_bytes + self._outbox_bytes <= WRITE_BUFFER_BYTES_MAX
        )

    def _next_frame(self) -> memoryview | None:
        try:
            frame = self._framer.next_frame(self._handler.frame_bytes_max)
        except FrameRefused as refusal:
            log.info("closing %s: %s", self.stream.peer, refusal)
            self._end_now()
            return None
        if frame is None:
            self._reserve_announced()
        return frame

    def _reserve_announced(self) -> None:
        announced = self._framer.announced_bytes()
        if announced is None or announced <= SMALL_FRAME_BYTES or self._reserved_bytes:
            return
        if self._budget.take(announced, self._on_budget):
            self._reserve(announced)
        else:
            self._is_waiting_for_budget = True

    def _reserve(self, announced_bytes: int) -> None:
        self._reserved_bytes = announced_bytes
        self.stream.read_into(self._framer.make_room())

    def _on_budget(self) -> None:
        self._is_waiting_for_budget = False
        announced = self._framer.announced_bytes()
        assert announced is not None
        if self._is_gone:
            self._budget.give_back(announced)
            return
        self._reserve(announced)
        self._last_read_ms = self._clock.monotonic_ms()  # it was us who did not read
        self._pump()

    def _mute_or_unmute(self) -> None:
        if self._is_waiting_for_budget or (
            self._framer.buffered_bytes >= READ_AHEAD_BYTES_MAX and not self._may_begin()
        ):
            self.stream.pause()
        else:
            self.stream.resume()

    # --- out

    def _begin(self, frame: memoryview) -> None:
        result, more_count = self._handler.on_frame(frame, self._following())
        if more_count:
            self._framer.skip(more_count)
        if isinstance(result, Outcome) and not self._slots and not self._reserved_bytes and not result.is_last:
            self._put_out(result)  # nobody waits before it: most answers come this way
            return
        slot = _Slot(self._reserved_bytes, 1 + more_count)
        self._reserved_bytes = 0
        self._slots.append(slot)
        self._in_flight_count += slot.request_count
        self._settle_or_wait(slot, result)

    def _settle_or_wait(self, slot: _Slot, result: Outcome | Later) -> None:
        if isinstance(result, Outcome):
            self._settle(slot, result)
            return
        if result.is_next_allowed:
            self._let_next_begin(slot)
            self._give_back(slot)  # its records are in the log already
        else:
            self._exclusive = slot
        task = asyncio.ensure_future(result.outcome)
        slot.task = task if result.is_cancelled_with_connection else None
        task.add_done_callback(lambda done: self._on_done(slot, done))

    def _on_done(self, slot: _Slot, done: asyncio.Future[Outcome | Later]) -> None:
        result: Outcome | Later = HANG_UP
        if done.cancelled():
            pass
        elif (error := done.exception()) is not None:
            log.error("a request of %s failed", self.stream.peer, exc_info=error)
        else:
            result = done.result()
        self._settle_or_wait(slot, result)
        self._pump()

    def _let_next_begin(self, slot: _Slot) -> None:
        if slot is self._exclusive:
            self._exclusive = None

    def _settle(self, slot: _Slot, outcome: Outcome) -> None:
        slot.outcome = outcome
        self._let_next_begin(slot)
        self._give_back(slot)
        if outcome.is_last:
            self._is_ending = True
        self._send_settled()

    def _give_back(self, slot: _Slot) -> None:
        if slot.reserved_bytes:
            self._budget.give_back(slot.reserved_bytes)
            slot.reserved_bytes = 0

    def _send_settled(self) -> None:
        while self._slots and (outcome := self._slots[0].outcome) is not None:
            self._in_flight_count -= self._slots.popleft().request_count
            self._put_out(outcome)
            if outcome.is_last:
                self._end()
                return
        if self._is_ending and self.is_idle:
            self._flush_outbox()
            self.stream.close()

    def _put_out(self, outcome: Outcome) -> None:
        if outcome.parts is not None:
            self._outbox += outcome.parts
            self._outbox_bytes += sum(map(part_size_bytes, outcome.parts))

    def _flush_outbox(self) -> None:
        """One sendmsg for the answers of all requests that came together."""
        if self._outbox:
            outbox, self._outbox, self._outbox_bytes = self._outbox, [], 0
            self._last_write_ms = self._clock.monotonic_ms()
            self.stream.send(outbox)

    def _end(self) -> None:
        for slot in self._slots:
            if slot.outcome is not None and slot.outcome.parts is not None:
                release_all(slot.outcome.parts)
        self._slots.clear()
        self._flush_outbox()
        self.stream.close()

    def _end_now(self) -> None:
        self._is_ending = True
        if self.is_idle:
            self.stream.close()

    def _on_close(self, error: Exception | None) -> None:
        self._is_gone = self._is_ending = True
        self._framer = Framer() if not self._is_waiting_for_budget else self._framer
        if self._reserved_bytes:
            self._budget.give_back(self._reserved_bytes)
            self._reserved_bytes = 0
        self._cancel_polls()
        self._on_closed(self)

    def _cancel_polls(self) -> None:
        for slot in list(self._slots):
            if slot.task is not None:
                slot.task.cancel()
