"""Which engine this process talks to: chosen once, by HIGHWATER_ENGINE."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured

from control_plane.engine.interface import Engine

_lock = threading.Lock()
_engine: Engine | None = None


def get_engine() -> Engine:
    global _engine  # noqa: PLW0603 (one engine per process is the point)
    with _lock:
        if _engine is None:
            _engine = make_engine(settings.HIGHWATER.engine)
        return _engine


def make_engine(kind: str) -> Engine:
    if kind == "highwater":
        from control_plane.engine.highwater import HighwaterEngine

        return HighwaterEngine(settings.HIGHWATER)
    if kind == "kafka":
        raise ImproperlyConfigured("HIGHWATER_ENGINE=kafka is not there yet: this version runs on `highwater` only")
    raise ImproperlyConfigured(f"HIGHWATER_ENGINE is {kind!r}: it must be `highwater`")


@contextmanager
def engine_in_place(engine: Engine) -> Iterator[Engine]:
    """Stand another engine in this process's place, for tests and tools."""
    global _engine  # noqa: PLW0603
    before, _engine = _engine, engine
    try:
        yield engine
    finally:
        _engine = before


def _forget_engine() -> None:
    """For a forked child only: connections of the parent must not be shared."""
    global _engine, _lock
    _engine, _lock = None, threading.Lock()


os.register_at_fork(after_in_child=_forget_engine)
