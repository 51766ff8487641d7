"""The restart delays."""

from __future__ import annotations

from control_plane.supervisor.backoff import RestartBackoff


def test_a_child_that_keeps_dying_is_started_ever_more_rarely() -> None:
    backoff = RestartBackoff()
    assert [backoff.on_death(lived_s=0.1) for _ in range(7)] == [1, 2, 4, 8, 16, 30, 30]


def test_a_healthy_minute_forgives_earlier_deaths() -> None:
    backoff = RestartBackoff()
    for _ in range(5):
        backoff.on_death(lived_s=0.1)
    assert backoff.on_death(lived_s=61) == 1
