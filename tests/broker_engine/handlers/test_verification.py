"""Asking a transaction's coordinator about a first batch, while it is still busy with the transaction before."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

from broker_engine.errors import ErrorCode
from broker_engine.handlers.verification import ask_coordinator
from broker_engine.partition.verification import Verifications
from broker_engine.records.batch import parse_header
from broker_engine.records.builder import NewRecord, build_batch

PLACE = ("orders", 0)
FIRST = parse_header(
    build_batch([NewRecord(0, None, b"v")], producer_id=9, producer_epoch=4, base_sequence=0, is_transactional=True)
)


class BusyCoordinator:
    """The marker of the transaction before comes to the partition after it was asked for the first time."""

    def __init__(self, verifications: Verifications) -> None:
        self._verifications = verifications
        self._asked_count = 0

    async def verify(self, *_: object, is_adding: bool) -> dict[tuple[str, int], ErrorCode]:
        self._asked_count += 1
        if self._asked_count > 1:
            return {PLACE: ErrorCode.NONE}
        self._verifications.forget(FIRST.producer_id)
        return {PLACE: ErrorCode.CONCURRENT_TRANSACTIONS}


async def test_a_batch_that_waited_for_the_marker_before_it_is_let_in() -> None:
    verifications = Verifications()
    guards = [verifications.begin(FIRST, is_adding=True)]
    broker = cast(Any, SimpleNamespace(transactions=BusyCoordinator(verifications)))
    codes = await ask_coordinator(
        broker,
        "payer",
        FIRST.producer_id,
        FIRST.producer_epoch,
        [PLACE],
        is_adding=True,
        take_guards=lambda: guards.append(verifications.begin(FIRST, is_adding=True)),
    )
    assert codes == {PLACE: ErrorCode.NONE}
    verifications.check(FIRST, guards[-1])
