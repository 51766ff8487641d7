"""Python's garbage collector, held back while much is made and nothing dropped, and kept off what stays."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

_LOG_COUNT = 1_000
"""So many are worth a change: whatever else is garbage at that moment stays with them."""


@contextmanager
def collector_paused() -> Iterator[bool]:
    """It goes through all there is each time that a quarter has been added: of 10,000 logs a fourth of the work. Yields
    whether it runs at other times.
    """
    was_enabled = gc.isenabled()  # a simulation has stopped it for good
    gc.disable()
    try:
        yield was_enabled
    finally:
        if was_enabled:
            gc.enable()


class KeptLogs:
    """Logs are open for as long as their topics are there. The collector need not go through all of them again and
    again, which takes it 0.25 s for 10,000, without an answer to anybody; those of deleted topics it has to find.
    """

    def __init__(self) -> None:
        self._opened_count = 0
        self._closed_count = 0

    @contextmanager
    def opening(self, count: int) -> Iterator[None]:
        with collector_paused() as is_in_use:
            yield
            self._opened_count += count
            if is_in_use and self._opened_count >= _LOG_COUNT:
                self._opened_count = 0
                gc.freeze()

    def note_closed(self, count: int) -> None:
        self._closed_count += count
        if gc.isenabled() and self._closed_count >= _LOG_COUNT:
            self._closed_count = 0
            gc.unfreeze()
