"""Where offsets go, and the files and the command that say the same."""

from __future__ import annotations

import pytest

from control_plane.engine.groups import LogRange
from control_plane.groups.reset import (
    TIMESTAMP_MS_MAX,
    Scope,
    Step,
    To,
    Wish,
    cli_text,
    iso_duration,
    parse_csv,
    steps_of,
    to_csv,
)
from control_plane.refusals import Invalid

PLACE = ("orders", 0)
LOG = LogRange(10, 100)


def after(wish: Wish, *, committed: int | None = 50, found: int | None = None) -> int:
    known = {} if committed is None else {PLACE: committed}
    [step] = steps_of(wish, [PLACE], known, {PLACE: LOG}, {PLACE: found})
    return step.after


def test_the_ends_of_the_log() -> None:
    assert after(Wish(to=To.EARLIEST)) == 10
    assert after(Wish(to=To.LATEST)) == 100


def test_current_is_what_is_committed_or_else_the_end() -> None:
    assert after(Wish(to=To.CURRENT)) == 50
    assert after(Wish(to=To.CURRENT), committed=None) == 100


def test_a_time_is_its_first_record_or_the_end() -> None:
    assert after(Wish(to=To.TIMESTAMP, timestamp_ms=7), found=33) == 33
    assert after(Wish(to=To.DURATION, duration_ms=7), found=None) == 100


def test_an_offset_is_brought_inside_of_the_log() -> None:
    assert [after(Wish(to=To.OFFSET, offset=it)) for it in (3, 42, 500)] == [10, 42, 100]


def test_a_shift_begins_at_what_is_committed() -> None:
    assert [after(Wish(to=To.SHIFT, shift=it)) for it in (-5, 5, -500, 500)] == [45, 55, 10, 100]
    with pytest.raises(Invalid, match="orders-0"):
        after(Wish(to=To.SHIFT, shift=1), committed=None)


def test_steps_count_what_is_skipped_and_what_is_read_again() -> None:
    assert (Step(*PLACE, 50, 80, LOG).skipped_count, Step(*PLACE, 50, 80, LOG).replayed_count) == (30, 0)
    assert (Step(*PLACE, 50, 20, LOG).skipped_count, Step(*PLACE, 50, 20, LOG).replayed_count) == (0, 30)
    assert Step(*PLACE, 2, 80, LOG).skipped_count == 70, "what retention took is not skipped"
    assert Step(*PLACE, None, 80, LOG).skipped_count == 0


def test_the_csv_is_kafkas_own_both_ways() -> None:
    offsets = {("orders", 0): 5, ("orders", 1): 2**62, ("with.dots", 3): 0}
    assert to_csv(offsets) == f"orders,0,5\norders,1,{2**62}\nwith.dots,3,0\n"
    assert parse_csv(to_csv(offsets), "g") == offsets


def test_a_csv_of_several_groups_gives_this_ones_lines() -> None:
    assert parse_csv('g,orders,0,5\nother,orders,0,9\n"g","orders",1,6\n', "g") == {("orders", 0): 5, ("orders", 1): 6}


@pytest.mark.parametrize("text", ["", "\n\n", "orders,0", "orders,zero,5", "orders,0,-1", ",0,5", "other,orders,0,5"])
def test_what_is_no_such_csv_is_refused(text: str) -> None:
    with pytest.raises(Invalid):
        parse_csv(text, "g")


def test_the_line_that_is_wrong_is_named() -> None:
    with pytest.raises(Invalid, match="line 2"):
        parse_csv("orders,0,5\norders,0,x\n", "g")


@pytest.mark.parametrize(
    ("wish", "want"),
    [
        (Wish(to=To.EARLIEST), "--all-topics --to-earliest"),
        (Wish(to=To.LATEST, scopes=(Scope("a", (0, 2)), Scope("b"))), "--topic a:0,2 --topic b --to-latest"),
        (Wish(to=To.TIMESTAMP, timestamp_ms=1_767_607_199_007), "--all-topics --to-datetime 2026-01-05T09:59:59.007Z"),
        (Wish(to=To.TIMESTAMP, timestamp_ms=TIMESTAMP_MS_MAX), "--all-topics --to-datetime 9999-12-31T23:59:59.999Z"),
        (Wish(to=To.DURATION, duration_ms=90_061_000), "--all-topics --by-duration P1DT1H1M1S"),
        (Wish(to=To.OFFSET, offset=5), "--all-topics --to-offset 5"),
        (Wish(to=To.SHIFT, shift=-5), "--all-topics --shift-by -5"),
        (Wish(to=To.FILE), "--from-file offsets.csv"),
    ],
)
def test_the_command_that_does_the_same(wish: Wish, want: str) -> None:
    head = "kafka-consumer-groups --bootstrap-server b:9092 --group 'my group' --reset-offsets"
    assert cli_text(wish, "my group", "b:9092", is_dry_run=True) == f"{head} {want} --dry-run"
    assert cli_text(wish, "my group", "b:9092", is_dry_run=False) == f"{head} {want} --execute"


def test_a_duration_is_written_as_kafkas_tool_reads_it() -> None:
    assert [iso_duration(it) for it in (0, 1500, 3_600_000)] == ["P0DT0H0M0S", "P0DT0H0M1.500S", "P0DT1H0M0S"]
