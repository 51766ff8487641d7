"""The checks of groups and transactions find what they name, and nothing else."""

from __future__ import annotations

from pathlib import Path

from broker_engine.simulator.history.rows import Partition, Poll, Row
from tests.chaos.group_check import never_polled, not_exactly_once, offsets_that_went_back
from tests.chaos.journal import Asked, Commit, Fetched, Journal, read_journal

ORDERS: Partition = ("orders", 0)


def test_a_member_that_begins_later_is_told_what_was_committed_or_something_newer() -> None:
    unanswered = Commit(ORDERS, 30, invoked=3.0, returned=4.0, is_ok=False)
    commits = [Commit(ORDERS, 10, 1.0, 2.0, is_ok=True), unanswered]
    assert not offsets_that_went_back([*commits, Fetched(ORDERS, 10, invoked=5.0)])
    assert not offsets_that_went_back([*commits, Fetched(ORDERS, 30, invoked=5.0)])


def test_a_group_offset_that_went_back_is_found() -> None:
    commits = [Commit(ORDERS, 10, 1.0, 2.0, is_ok=True), Commit(ORDERS, 20, 3.0, 4.0, is_ok=True)]
    assert "20 had been acknowledged" in offsets_that_went_back([*commits, Fetched(ORDERS, 10, invoked=5.0)])[0]
    assert "is -1" in offsets_that_went_back([*commits, Fetched(ORDERS, -1, invoked=5.0)])[0]


def test_a_question_that_was_asked_before_the_answer_may_get_the_older_offset() -> None:
    commits = [Commit(ORDERS, 10, 1.0, 2.0, is_ok=True), Commit(ORDERS, 20, 3.0, 4.0, is_ok=True)]
    assert not offsets_that_went_back([*commits, Fetched(ORDERS, 10, invoked=3.5)])


def test_an_offset_that_nobody_committed_is_found() -> None:
    commit = Commit(ORDERS, 10, 1.0, 2.0, is_ok=True)
    assert "nobody committed" in offsets_that_went_back([commit, Fetched(ORDERS, 11, invoked=3.0)])[0]


def test_a_member_that_was_killed_while_it_committed_may_have_done_so_or_not() -> None:
    asked = Asked(ORDERS, 20)
    commit = Commit(ORDERS, 10, 1.0, 2.0, is_ok=True)
    assert not offsets_that_went_back([commit, asked, Fetched(ORDERS, 20, invoked=3.0)])
    assert not offsets_that_went_back([commit, asked, Fetched(ORDERS, 10, invoked=3.0)])


def test_a_record_that_came_to_no_member_is_found() -> None:
    row = Row("member", "poll", "ok", 1.0, (Poll(ORDERS, ((0, "a"), (1, "b"))),))
    assert not never_polled({"a", "b"}, [row])
    assert "1 acknowledged records came to no member" in never_polled({"a", "c"}, [row])[0]


def test_what_stands_once_is_fine_and_an_unanswered_record_may_stand_or_not() -> None:
    assert not not_exactly_once({"a": 1}, ["a@t.1.1"], possible={"a", "b"})
    assert not not_exactly_once({"a": 1}, ["a@t.1.1", "b@t.1.2"], possible={"a", "b"})


def test_results_that_are_missing_doubled_or_of_nothing_are_found() -> None:
    assert "missing" in not_exactly_once({"a": 1}, [], possible={"a"})[0]
    assert "too often" in not_exactly_once({"a": 1}, ["a@t.1.1", "a@t.2.1"], possible={"a"})[0]
    assert "nobody sent" in not_exactly_once({}, ["x@t.1.1"], possible={"a"})[0]


def test_a_journal_that_a_kill_cut_off_is_read_up_to_there(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    with Journal(path, "member") as journal:
        journal.row("assign", "ok")
        journal.add(Commit(ORDERS, 10, 1.0, 2.0, is_ok=True))
    path.write_bytes(path.read_bytes()[:-3])
    assert [type(entry) for entry in read_journal(path)] == [Row]
