"""The rules, as a table: what was committed and how far behind it was in, a status out."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pytest

from control_plane.groups.rules import (
    LIMITS,
    Now,
    Sample,
    Status,
    Trend,
    duration,
    is_behind,
    judge,
    slope_per_s,
    worst,
)

STEP_MS = 30_000
WINDOW_MS = LIMITS.window_ms
END_MS = 10 * WINDOW_MS


@dataclass(frozen=True)
class Story:
    name: str
    offsets: list[int]
    lags: list[int]
    want: Status
    lag_s: float | None = 60.0
    commits_stopped_ms: int = 0
    """How long before now the last commit was."""
    repeats_commits: bool = True


def steady(value: int, count: int = 8) -> list[int]:
    return [value] * count


def rising(start: int, step: int, count: int = 8) -> list[int]:
    return [start + step * number for number in range(count)]


STORIES = [
    Story("all is read", rising(0, 100), steady(0), Status.OK),
    Story("a tiny lag for a moment", rising(0, 100), steady(3), Status.OK, lag_s=1.0),
    Story("many records, but none older than a moment", rising(0, 100), steady(5000), Status.OK, lag_s=2.0),
    Story("few records, for a minute", rising(0, 100), steady(15), Status.OK, lag_s=60.0),
    Story("one record, for longer than the window", steady(7), steady(1), Status.STOP, lag_s=4000.0,
          commits_stopped_ms=WINDOW_MS + 1),
    Story("no commit for longer than the window", steady(7), steady(900), Status.STOP,
          commits_stopped_ms=WINDOW_MS + 1),
    Story("no commit, but nothing was there to read a moment ago", steady(7), [0, 0, 0, 0, 0, 0, 0, 900], Status.WARN,
          commits_stopped_ms=WINDOW_MS + 1),
    Story("the offset went back", [500, 600, 700, 100, 120, 140, 160, 180], steady(900), Status.REWIND),
    Story("it went back and has come to where it was", [500, 600, 700, 100, 300, 500, 700, 900], steady(900),
          Status.WARN),
    Story("it had caught up in the window, and stays near", rising(0, 100), [900, 500, 5, 30, 25, 30, 28, 30],
          Status.OK),
    Story("one dip hides no rising trend", rising(0, 100), [100, 5, 900, 1800, 2700, 3600, 4500, 5400], Status.WARN),
    Story("commits of one offset", steady(7), steady(900), Status.STALL),
    Story("one commit, and then silence shorter than the window", steady(7), steady(900), Status.WARN,
          repeats_commits=False, commits_stopped_ms=WINDOW_MS - 1000),
    Story("it reads and falls behind", rising(0, 100), rising(100, 500), Status.WARN),
    Story("it reads as fast as others write", rising(0, 100), steady(900), Status.WARN),
    Story("it catches up", rising(0, 900), rising(8000, -900), Status.OK),
    Story("nobody has looked how old it is", rising(0, 100), rising(100, 500), Status.WARN, lag_s=None,
          commits_stopped_ms=20_000),
    Story("committed this moment: how old the rest is, is just being looked up", rising(0, 100), rising(100, 500),
          Status.OK, lag_s=None),
    Story("too young to tell", [5], [900], Status.OK),
]  # fmt: skip


def told(story: Story) -> tuple[Now, list[Sample]]:
    count = len(story.offsets)
    last_commit_ms = END_MS - story.commits_stopped_ms
    samples = []
    for number, (offset, lag) in enumerate(zip(story.offsets, story.lags, strict=True)):
        at_ms = END_MS - (count - 1 - number) * STEP_MS
        commit_ms = min(at_ms, last_commit_ms) if story.repeats_commits else last_commit_ms
        samples.append(Sample(at_ms, offset, commit_ms, lag))
    return Now(END_MS, last_commit_ms, story.lags[-1], story.lag_s), samples


@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.name)
def test_a_partition_is_judged(story: Story) -> None:
    verdict = judge(*told(story))
    assert verdict.status is story.want, verdict.words
    assert verdict.words.endswith(".")


def test_samples_older_than_the_window_say_nothing() -> None:
    now, samples = told(Story("", rising(0, 100), steady(900), Status.WARN))
    old = [Sample(END_MS - 2 * WINDOW_MS, 99_999, 0, 0)]
    assert judge(now, [*old, *samples]).status is Status.WARN


def test_the_words_say_how_many_records_wait_and_for_how_long() -> None:
    story = replace(STORIES[5], lag_s=7500.0)
    assert judge(*told(story)).words == "Nothing was committed for 5 min, and 900 records wait, the oldest for 2 h."


def test_the_words_do_not_say_that_it_reads_when_it_does_not() -> None:
    story = Story("", steady(7), rising(100, 500), Status.WARN, repeats_commits=False, commits_stopped_ms=250_000)
    verdict = judge(*told(story))
    assert verdict.status is Status.WARN
    assert verdict.words.startswith("Nothing was committed for 4 min, and 3,600 records wait")


def test_who_catches_up_is_told_when_it_will_be_done() -> None:
    verdict = judge(*told(Story("", rising(0, 900), rising(8000, -900), Status.OK)))
    assert verdict.trend is Trend.SHRINKING
    assert verdict.eta_s == pytest.approx(1700 / 30, rel=0.01)
    assert "at this pace done in 56 s" in verdict.words


def test_a_lag_counts_by_records_and_seconds_both() -> None:
    assert is_behind(Now(0, 0, LIMITS.lag_records_min + 1, LIMITS.lag_seconds_min + 1))
    assert not is_behind(Now(0, 0, LIMITS.lag_records_min, LIMITS.lag_seconds_min + 1))
    assert not is_behind(Now(0, 0, LIMITS.lag_records_min + 1, LIMITS.lag_seconds_min))


def test_a_slope_is_records_per_second() -> None:
    assert slope_per_s([Sample(0, 0, 0, 10), Sample(1000, 0, 0, 20), Sample(2000, 0, 0, 30)]) == pytest.approx(10)
    assert slope_per_s([Sample(5, 0, 0, 1), Sample(5, 0, 0, 9)]) == 0


def test_a_group_is_as_well_as_its_worst_partition() -> None:
    assert worst([Status.OK, Status.STALL, Status.WARN]) is Status.STALL
    assert worst([Status.STOP, Status.OK]) is Status.STOP
    assert worst([Status.OK, Status.UNKNOWN]) is Status.UNKNOWN
    assert worst([]) is Status.UNKNOWN


def test_durations_are_said_as_people_do() -> None:
    assert [duration(it) for it in (0.4, 59, 119, 120, 7200, 200_000)] == [
        "0 s",
        "59 s",
        "119 s",
        "2 min",
        "2 h",
        "2 d",
    ]
