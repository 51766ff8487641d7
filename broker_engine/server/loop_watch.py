"""Watches, from a thread of its own, whether the event loop stands still, and logs where it does.

The loop beats ten times a second. When a beat is overdue its thread is in the midst of what holds it up, and the stack
says what that is; clients, followers and heartbeats wait meanwhile. A thread that sleeps and a timer: else it costs
nothing. A simulated loop has no need of it, and no time to measure.
"""

from __future__ import annotations

import asyncio
import logging
import sys
import threading
import time
import traceback
from typing import Self

log = logging.getLogger(__name__)

BEAT_S = 0.1
OVERDUE_S = 0.2
QUIET_S = 30.0
"""From one stack to the next: what comes in between is counted."""
_ALLOWED_S = BEAT_S + OVERDUE_S
_FRAMES_MAX = 40


class LoopWatch:
    """`with LoopWatch():` in a coroutine, for as long as its loop is to be watched."""

    def __init__(self, *, quiet_s: float = QUIET_S) -> None:
        self.quiet_s = quiet_s
        self.beat_count = self.stall_count = 0
        self._thread = threading.Thread(target=self._run, name="loop watch", daemon=True)
        self._has_ended = threading.Event()
        self._beat_s = time.monotonic()
        self._told_s = -quiet_s
        self._told_beat_s = 0.0
        """The beat after which nothing came, as far as that was told."""
        self._told_count = 0

    def __enter__(self) -> Self:
        self._loop = asyncio.get_running_loop()
        self._loop_thread_id = threading.get_ident()
        self._beat()
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._timer.cancel()
        self._has_ended.set()
        self._thread.join()

    def _beat(self) -> None:
        last_s, self._beat_s = self._beat_s, time.monotonic()
        self.beat_count += 1
        if last_s == self._told_beat_s:
            log.warning("the event loop goes on, %d ms after it was last seen to", (self._beat_s - last_s) * 1000)
        self._timer = self._loop.call_later(BEAT_S, self._beat)

    # --- in the thread

    def _run(self) -> None:
        wait_s, noted_beat_s = _ALLOWED_S, 0.0
        while (was_awake := self._wait(wait_s)) is not None:
            beat_s, now_s = self._beat_s, time.monotonic()
            left_s = beat_s + _ALLOWED_S - now_s
            if was_awake and left_s <= 0 and beat_s != noted_beat_s:
                noted_beat_s = beat_s
                self._note_stall(beat_s, now_s)
            wait_s = left_s if left_s > 0 else OVERDUE_S

    def _wait(self, wait_s: float) -> bool | None:
        """None: it is over. False: this process was stopped meanwhile, or the machine slept, and no code is to blame.

        Nor did this thread run while something in C held the interpreter, but then the processor was at work.
        """
        began_s, began_cpu_s = time.monotonic(), time.process_time()
        if self._has_ended.wait(wait_s):
            return None
        overslept_s = time.monotonic() - began_s - wait_s
        return overslept_s < OVERDUE_S or time.process_time() - began_cpu_s > overslept_s / 10

    def _note_stall(self, beat_s: float, now_s: float) -> None:
        self.stall_count += 1
        if now_s - self._told_s < self.quiet_s:
            return
        untold_count, self._told_count = self.stall_count - self._told_count - 1, self.stall_count
        self._told_s, self._told_beat_s = now_s, beat_s
        log.warning(
            "the event loop has stood still for %d ms (%d more times since the last one told of), in:\n%s",
            (now_s - beat_s) * 1000,
            untold_count,
            self._stack(),
        )

    def _stack(self) -> str:
        return "".join(traceback.format_stack(sys._current_frames()[self._loop_thread_id], _FRAMES_MAX))
