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
    elsewhere = {Kind.NOT_LINEARIZABLE, Kind.G1C_WW}
    assert set(PLANTED) == set(Kind) - elsewhere


def test_an_aborted_transactions_value_that_was_read_is_g1a() -> None:
    assert found_in("t1 abort send 1@0 send b/2@0 \n c1 poll 0:1") == [Kind.G1A]


def test_a_transaction_seen_in_half_is_found_as_a_loss_of_the_other_half() -> None:
    script = """
        t1 commit send 1@0 send b/2@0
        p1 send b/3
        p1 ok b/3@1
        c1 poll 0:1 b/1:3
    """
    assert found_in(script) == [Kind.LOST_WRITE]


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


def test_a_cycle_that_needs_the_order_of_writes_is_reported_apart_and_allowed() -> None:
    script = """
        t1 commit send 1@0 send b/3@1
        t2 commit send 2@1 send b/4@0
        c1 poll 0:1 1:2 b/0:4 b/1:3
    """
    report = report_of(script)
    assert report.is_ok
    assert [anomaly.kind for anomaly in report.allowed] == [Kind.G1C_WW]
    assert found_in(script, Allowed(kinds=frozenset())) == [Kind.G1C_WW]


def test_the_report_counts_what_was_lost_and_what_stands_twice() -> None:
    report = report_of("p1 send 1 2 3 4 \n p1 ok 1@0 2@1 3@2 \n c1 poll 0:1 2:3 3:3")
    assert (report.sent, report.acked, report.unknown, report.read) == (4, 3, 1, 2)
    assert (report.lost, report.duplicated) == (1, 1)
    assert "lost 1, duplicated 1" in str(report)
    assert "lost-write 1" in str(report)
