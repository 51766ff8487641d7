"""Python's garbage collector, held back while much is made and nothing dropped."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def collector_paused() -> Iterator[None]:
    """It goes through all there is each time that a quarter has been added: of 10,000 logs a fourth of the work."""
    was_enabled = gc.isenabled()  # a simulation has stopped it for good
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
