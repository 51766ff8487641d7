"""What a transaction's coordinator says about a batch, in the words of who asks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from broker_engine.errors import ErrorCode
from broker_engine.handlers.verification import ask_coordinator, refusal_of
from broker_engine.server.markers import TopicPartition


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


class Forgetful:
    """A broker that leaves out what it was asked for last."""

    @property
    def transactions(self) -> Forgetful:
        return self

    async def verify(self, _: str, *ask: Any, is_adding: bool) -> Mapping[TopicPartition, ErrorCode]:
        return dict.fromkeys(ask[-1][:-1], ErrorCode.NONE)


async def test_what_the_coordinator_says_nothing_of_is_not_allowed() -> None:
    first, last = ("orders", 0), ("__consumer_offsets", 3)
    codes = await ask_coordinator(Forgetful(), "id", 1, 0, [first, last], is_adding=True)  # type: ignore[arg-type]
    assert codes == {first: ErrorCode.NONE, last: ErrorCode.UNKNOWN_SERVER_ERROR}
