"""Visible progress: no step longer than a second passes in silence, on a terminal or in a log file."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO

SPINNER = "|/-\\"
STILL_EVERY_S = 5.0


class Progress:
    """Writes one line per step. A terminal sees it turn; a pipe gets a line now and then, and at the end."""

    def __init__(self, out: TextIO) -> None:
        self._out = out
        self._is_terminal = out.isatty()
        self._step = ""
        self._started_s = 0.0
        self._last_line_s = 0.0

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        self._step, self._started_s = name, time.monotonic()
        self._last_line_s = self._started_s
        self._begin()
        try:
            yield
        except BaseException:
            self._end("FAILED")
            raise
        self._end("ok")

    def tick(self, detail: str = "") -> None:
        """Call it while waiting inside a step; `detail` says how far it is."""
        now_s = time.monotonic()
        elapsed_s = now_s - self._started_s
        if self._is_terminal:
            turn = SPINNER[int(elapsed_s * 8) % len(SPINNER)]
            self._write(f"\r\x1b[K  {self._step} {turn} {elapsed_s:.0f} s {detail}")
        elif now_s - self._last_line_s >= STILL_EVERY_S:
            self._last_line_s = now_s
            self._write(f"  {self._step}: still at it after {elapsed_s:.0f} s{detail and f', {detail}'}\n")

    def say(self, text: str) -> None:
        self._write(text + "\n")

    def _begin(self) -> None:
        if self._is_terminal:
            self._write(f"  {self._step} ...")

    def _end(self, outcome: str) -> None:
        elapsed_s = time.monotonic() - self._started_s
        start = "\r\x1b[K" if self._is_terminal else ""
        self._write(f"{start}  {self._step}: {outcome} ({elapsed_s:.1f} s)\n")

    def _write(self, text: str) -> None:
        self._out.write(text)
        self._out.flush()
