"""Each anomaly that the checker names, planted in a small history, is found, by its name and alone."""

from __future__ import annotations

import pytest

from broker_engine.simulator.history import Allowed, Kind
from tests.simulation.history.scripts import found_in, report_of

PLANTED = {
    Kind.INCONSISTENT_OFFSETS: """
        p1 send 1 2
        p1 info 1 2
        c1 poll 0:1
        c2 poll 0:2
    """,
    Kind.DUPLICATE: """
        p1 send 1
        p1 ok 1@0
        c1 poll 0:1 1:1
    """,
    Kind.LOST_WRITE: """
        p1 send 1
        p1 ok 1@0
        p2 send 2
        p2 ok 2@1
        c1 poll 1:2
    """,
    Kind.UNSEEN: """
        p1 send 1 2
        p1 ok 1@0 2@1
        c1 poll 0:1
    """,
    Kind.G1A: """
        p1 send 1
        p1 fail 1
        c1 poll 0:1
    """,
    Kind.PRECOMMITTED_READ: """
        t1 commit send 1@0 poll 0:1
    """,
    Kind.POLL_SKIP: """
        p1 send 1 2 3
        p1 ok 1@0 2@1 3@2
        c2 poll 0:1 1:2 2:3
        c1 poll 0:1
        c1 poll 2:3
    """,
    Kind.NONMONOTONIC_POLL: """
        p1 send 1 2
        p1 ok 1@0 2@1
        c1 poll 0:1 1:2
        c1 poll 1:2
    """,
    Kind.INT_POLL_SKIP: """
        p1 send 1 2 3
        p1 ok 1@0 2@1 3@2
        c2 poll 0:1 1:2 2:3
        t1 commit poll 0:1 2:3
    """,
    Kind.INT_NONMONOTONIC_POLL: """
        p1 send 1 2
        p1 ok 1@0 2@1
        t1 commit poll 0:1 1:2 0:1
    """,
    Kind.NONMONOTONIC_SEND: """
        p1 send 1
        p1 ok 1@1
        p1 send 2
        p1 ok 2@0
        c1 poll 0:2 1:1
    """,
    Kind.G1C: """
        t1 commit send 1@0 poll b/0:2
        t2 commit send b/2@0 poll 0:1
    """,
    Kind.G1B: """
        t1 begin 1
        c1 poll 0:1
        t1 commit!
        t1 commit send 1@0
    """,
    Kind.LOST_COMMIT: """
        t1 commit send 1@0 send b/2@0
        p1 send 3
        p1 ok 3@1
        c1 poll 1:3
    """,
    Kind.FRACTURED: """
        t1 commit send 1@0 send b/2@0
        p1 send b/3
        p1 ok b/3@1
        c1 poll 0:1 b/1:3
    """,
    Kind.ZOMBIE_COMMIT: """
        t1 init 0
        t1 begin 1
        t2 init 1
        t1 commit!
        t1 commit epoch 0 send 1@0
        c1 poll 0:1
    """,
    Kind.UNKNOWN_VALUE: """
        c1 poll 0:77
    """,
    Kind.NONMONOTONIC_END: """
        c1 end?
        c1 end 5
        c1 end?
        c1 end 4
    """,
    Kind.STALE_END: """
        p1 send 1
        p1 ok 1@0
        c1 end?
        c1 end 0
        c2 poll 0:1
    """,
}


@pytest.mark.parametrize("kind", PLANTED)
def test_each_planted_anomaly_is_found_by_its_name_and_alone(kind: Kind) -> None:
    assert found_in(PLANTED[kind]) == [kind]


def test_every_kind_but_the_registers_one_is_planted() -> None:
    elsewhere = {Kind.NOT_LINEARIZABLE, Kind.G1C_WW, Kind.G0}
    assert set(PLANTED) == set(Kind) - elsewhere


def test_an_aborted_transactions_value_that_was_read_is_g1a() -> None:
    assert found_in("t1 abort send 1@0 send b/2@0 \n c1 poll 0:1") == [Kind.G1A]


def test_an_unsure_transaction_is_read_whole_or_not_at_all() -> None:
    unsure = "t1 unsure send 1 send b/2 \n"
    assert found_in(unsure + "c1 poll 0:1 b/0:2") == []
    assert found_in(unsure) == []
    assert found_in(unsure + "c1 poll 0:1") == [Kind.FRACTURED]


def test_who_never_asked_to_be_committed_is_read_by_nobody() -> None:
    """It crashed."""
    assert found_in("t1 begin 1 \n c1 poll 0:1") == [Kind.G1B]


def test_readers_of_uncommitted_records_may_see_what_is_open_or_aborted() -> None:
    script = """
        t1 begin 1
        c1 peek 0:1
        t1 abort send 1@0
        c1 peek 0:1
        p1 send 2
        p1 ok 2@2
        c2 poll 2:2
    """
    assert found_in(script) == []


def test_an_epoch_is_given_once_and_never_a_lower_one_after_it() -> None:
    assert found_in("t1 init 4 \n t2 init 4") == [Kind.ZOMBIE_COMMIT]
    assert found_in("t1 init 4 \n t2 init? \n t2 init 3") == [Kind.ZOMBIE_COMMIT]
    assert found_in("t2 init? \n t1 init 4 \n t2 init 3") == [], "the answer was late"
    assert found_in("t1 init 4 \n t1 init 4 \n t2 init 5") == []


def test_a_commit_that_was_asked_for_before_the_next_one_came_is_no_zombies() -> None:
    script = "t1 init 0 \n t1 begin 1 \n t1 commit! \n t2 init 1 \n t1 commit epoch 0 send 1@0 \n c1 poll 0:1"
    assert found_in(script) == []


def test_two_acknowledged_values_at_one_offset_are_inconsistent_even_if_one_is_never_read() -> None:
    script = "p1 send 1 \n p1 ok 1@0 \n p2 send 2 \n p2 ok 2@0 \n c1 poll 0:2"
    assert Kind.INCONSISTENT_OFFSETS in found_in(script)


def test_a_cycle_of_three_transactions_is_found() -> None:
    script = """
        t1 commit send 1@0 poll c/0:3
        t2 commit send b/2@0 poll 0:1
        t3 commit send c/3@0 poll b/0:2
    """
    assert found_in(script) == [Kind.G1C]


def test_transactions_that_write_between_each_other_are_reported_apart_and_allowed() -> None:
    script = """
        t1 commit send 1@0 send b/3@1
        t2 commit send 2@1 send b/4@0
        c1 poll 0:1 1:2 b/0:4 b/1:3
    """
    report = report_of(script)
    assert report.is_ok
    assert [anomaly.kind for anomaly in report.allowed] == [Kind.G0]
    assert found_in(script, Allowed(kinds=frozenset())) == [Kind.G0]


def test_a_cycle_that_needs_reads_and_the_order_of_writes_is_reported_apart_and_allowed() -> None:
    script = """
        t1 commit send 1@0 poll b/0:3
        t2 commit send 2@1 send b/3@0
        c1 poll 0:1 1:2 b/0:3
    """
    report = report_of(script)
    assert report.is_ok
    assert [anomaly.kind for anomaly in report.allowed] == [Kind.G1C_WW]


def test_the_report_counts_what_was_lost_and_what_stands_twice() -> None:
    report = report_of("p1 send 1 2 3 4 \n p1 ok 1@0 2@1 3@2 \n c1 poll 0:1 2:3 3:3")
    assert (report.sent, report.acked, report.unknown, report.read) == (4, 3, 1, 2)
    assert (report.lost, report.duplicated) == (1, 1)
    assert "lost 1, duplicated 1" in str(report)
    assert "lost-write 1" in str(report)
