"""What a transaction's coordinator says about a batch, in the words of who asks."""

from __future__ import annotations

import pytest

from broker_engine.errors import ErrorCode
from broker_engine.handlers.verification import refusal_of


@pytest.mark.parametrize(
    "code",
    [
        ErrorCode.BROKER_NOT_AVAILABLE,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NETWORK_EXCEPTION,
        ErrorCode.NOT_COORDINATOR,
    ],
    ids=lambda code: code.name,
)
@pytest.mark.parametrize(
    "try_again",
    [ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS],
    ids=["Produce", "TxnOffsetCommit"],
)
def test_a_coordinator_on_its_way_down_or_up_fails_no_producer(code: ErrorCode, try_again: ErrorCode) -> None:
    refusal = refusal_of(code, is_abortable_known=True, try_again=try_again)
    assert refusal is not None
    assert refusal.code is try_again
