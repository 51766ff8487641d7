"""What the garbage collector goes through: not the logs that stay, but those of deleted topics."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

from broker_engine.server.collector import KeptLogs


@pytest.fixture(autouse=True)
def nothing_frozen() -> Iterator[None]:
    gc.unfreeze()
    yield
    gc.unfreeze()


def open_logs(kept: KeptLogs, count: int) -> list[list[int]]:
    with kept.opening(count):
        return [[number] for number in range(count)]


def test_few_logs_are_nothing_to_keep_off() -> None:
    logs = open_logs(KeptLogs(), 999)
    assert len(logs) == 999
    assert gc.get_freeze_count() == 0


def test_thousands_of_logs_are_kept_off_until_as_many_are_gone() -> None:
    kept = KeptLogs()
    logs = [open_logs(kept, 600), open_logs(kept, 600)]
    assert gc.get_freeze_count() >= sum(map(len, logs))
    kept.note_closed(999)
    assert gc.get_freeze_count() > 0
    kept.note_closed(1)
    assert gc.get_freeze_count() == 0


def test_a_collector_that_somebody_else_has_stopped_is_left_alone() -> None:
    gc.disable()  # as a simulation does
    try:
        kept = KeptLogs()
        open_logs(kept, 5_000)
        assert gc.get_freeze_count() == 0
        gc.freeze()
        kept.note_closed(5_000)
        assert gc.get_freeze_count() > 0
        assert not gc.isenabled()
    finally:
        gc.enable()
