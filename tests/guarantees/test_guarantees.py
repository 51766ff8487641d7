"""The lab's own judge, and its stories (most of them slow: `make guarantees` is the same with a page at its end)."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.guarantees.__main__ import STORIES, play
from tests.guarantees.story import Counts, Expected, Story, judge
from tests.guarantees.table import Line, page

SAFE = Counts(sent=100, acked=100, read=100, lost=0, duplicated=0)
LOSING = Counts(sent=100, acked=100, read=90, lost=10, duplicated=0)
DOUBLING = Counts(sent=100, acked=100, read=100, lost=0, duplicated=5)
QUICK = ("group-work-first", "chain-transaction-read_committed")
"""One of a setting that repeats, one of the safest there is; the others are played by `make test-all`."""
REFUSING = Counts(sent=100, acked=40, read=40, lost=0, duplicated=0)


@pytest.mark.parametrize(
    ("expected", "good", "bad"),
    [
        (Expected.KEEPS, SAFE, LOSING),
        (Expected.KEEPS, REFUSING, DOUBLING),
        (Expected.LOSES, LOSING, SAFE),
        (Expected.DUPLICATES, DOUBLING, SAFE),
        (Expected.REFUSES, REFUSING, SAFE),
    ],
)
def test_the_judge_knows_a_kept_promise_and_a_shown_loss(expected: Expected, good: Counts, bad: Counts) -> None:
    story = Story("s", "C1", "event", "setting", "promise", expected)
    assert judge(story, good) == ""
    assert judge(story, bad) != ""


def test_a_lab_that_shows_no_loss_with_an_unsafe_setting_says_so_on_its_page() -> None:
    story = Story("s", "C1", "event", "acks=0", "nothing", Expected.LOSES)
    assert "FAILED" in page([Line(story, SAFE, judge(story, SAFE))])


def test_stories_have_names_of_their_own() -> None:
    assert len({story.key for story in STORIES}) == len(STORIES)


@pytest.mark.parametrize(
    "story",
    [pytest.param(story, id=story.key, marks=() if story.key in QUICK else pytest.mark.slow) for story in STORIES],
)
def test_each_story_goes_as_its_setting_promises(story: Story, tmp_path: Path) -> None:
    line = play(story, tmp_path)
    assert not line.problem, line.problem
