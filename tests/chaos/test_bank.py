"""Bank transfers over three brokers while brokers and clients are killed: 30 s in `make test`, five minutes in all."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.chaos.bank import ACCOUNTS, OPENING_BALANCE, Books, book, check, play

SEED = 20_261_117
TRANSFER = "7:0:1:50"


def entries(transfer: str) -> list[str]:
    return [f"{text}@booker.1.1" for _, text in book(("transfers", 0), 0, transfer)]


def test_a_transfer_is_booked_in_two_partitions_and_leaves_the_sum() -> None:
    (first, _), (second, _) = book(("transfers", 0), 0, TRANSFER)
    assert first != second
    books = Books()
    for entry in entries(TRANSFER):
        books.add(entry)
    assert check(books, [TRANSFER], [TRANSFER]) == []
    assert books.balances[0] == OPENING_BALANCE - 50
    assert sum(books.balances.values()) == ACCOUNTS * OPENING_BALANCE


@pytest.mark.parametrize(
    ("read", "problem"),
    [
        ([], "missing"),
        (entries(TRANSFER)[:1], "instead of"),
        (entries(TRANSFER) * 2, "too often"),
    ],
    ids=["lost", "half", "twice"],
)
def test_the_audit_finds_money_that_vanished_or_appeared(read: list[str], problem: str) -> None:
    books = Books()
    for entry in read:
        books.add(entry)
    assert any(problem in text for text in check(books, [TRANSFER], [TRANSFER]))


def play_for(seconds: float, folder: Path) -> None:
    result = play(folder, seconds, SEED, print)
    print(result.line())
    assert not result.problems, "\n".join(result.problems)
    assert min(result.kills.values()) > 0
    assert len(result.books.entries) >= 2 * len(result.orders.acked) > 0
    assert result.books.boundaries > 0


@pytest.mark.timeout(280)
def test_the_sum_never_changes_while_brokers_and_clients_are_killed(tmp_path: Path) -> None:
    play_for(30.0, tmp_path)


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_the_sum_never_changes_over_five_minutes_of_kills(tmp_path: Path) -> None:
    play_for(300.0, tmp_path)
