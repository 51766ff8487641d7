"""A reader that hangs costs neither the history nor the run."""

from __future__ import annotations

import threading

from tests.chaos.load import _still_running


def test_where_a_thread_hangs_is_told_and_nobody_waits_for_it() -> None:
    gate = threading.Event()
    threads = [threading.Thread(target=gate.wait), threading.Thread(target=str)]
    for thread in threads:
        thread.start()
    (told,) = _still_running(threads, timeout_s=0.05)
    assert "threading.py" in told
    gate.set()
    assert _still_running(threads, timeout_s=5.0) == []
