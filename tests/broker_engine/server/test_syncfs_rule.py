"""When one sync of the whole file system is chosen over one per log."""

from __future__ import annotations

import pytest

from broker_engine.server.syncfs_rule import LOGS_MIN, RETRY_MS, SyncfsRule


def rule(setting: str = "auto", *, owns_file_system: bool = True) -> SyncfsRule:
    return SyncfsRule(setting, owns_file_system=owns_file_system, thread_count=4)


@pytest.mark.parametrize(
    ("setting", "owns_file_system", "is_used"),
    [
        ("auto", True, True),
        ("auto", False, False),
        ("never", True, False),
        ("always", False, True),
    ],
)
def test_the_setting_and_the_file_system_decide(setting: str, owns_file_system: bool, is_used: bool) -> None:
    chosen = rule(setting, owns_file_system=owns_file_system)
    assert chosen.is_better(LOGS_MIN, now_ms=0) is is_used
    assert not chosen.is_better(LOGS_MIN - 1, now_ms=0), "few logs are flushed one by one"


def test_one_that_took_longer_than_the_logs_would_have_is_followed_by_flushes_log_by_log() -> None:
    chosen = rule()
    chosen.on_one_log(2)
    chosen.on_syncfs(100, elapsed_ms=50, now_ms=0)  # 100 logs of 2 ms on four threads: 50 ms
    assert chosen.is_better(100, now_ms=1)
    chosen.on_syncfs(100, elapsed_ms=51, now_ms=0)
    assert not chosen.is_better(100, now_ms=1)
    assert chosen.is_better(100, now_ms=RETRY_MS), "somebody else's dirty pages are written by then"


def test_always_does_not_measure() -> None:
    chosen = rule("always")
    chosen.on_one_log(0)
    chosen.on_syncfs(100, elapsed_ms=500, now_ms=0)
    assert chosen.is_better(100, now_ms=1)


@pytest.mark.parametrize("setting", ["auto", "always"])
def test_after_an_error_it_is_never_asked_again(setting: str) -> None:
    chosen = rule(setting)
    chosen.on_error()
    assert not chosen.is_better(1_000, now_ms=10 * RETRY_MS)
