"""Asking a transaction's coordinator about the first batch of a transaction in a partition (KIP-890).

Clients of the first version of transactions added the partition before: it is verified. Those of version 2 did not: it
is added now. What the coordinator says is told in codes that the asking client knows.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from broker_engine.errors import BrokerError, ErrorCode
from broker_engine.server.markers import TopicPartition

if TYPE_CHECKING:
    from broker_engine.server.broker import Broker

_RETRY_PAUSE_S = 0.02
_RETRIES_MAX = 5
"""Kafka's: a client of version 2 begins its next transaction while the last one's markers are being written."""
_TRY_AGAIN = frozenset(
    {
        ErrorCode.CONCURRENT_TRANSACTIONS,
        ErrorCode.NETWORK_EXCEPTION,
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.BROKER_NOT_AVAILABLE,  # it was restarted, and has not joined yet
    }
)
"""Nothing is wrong with the batch."""


async def ask_coordinator(
    broker: Broker,
    transactional_id: str,
    producer_id: int,
    producer_epoch: int,
    places: Sequence[TopicPartition],
    *,
    is_adding: bool,
    take_guards: Callable[[], None],
) -> dict[TopicPartition, ErrorCode]:
    """The coordinator's codes as they are, one for each place; `transactional_id` is a physical text.

    `take_guards` is called before the question is put again: the end of the transaction before, which it waits for,
    takes guards away that were handed out before it.
    """
    for _ in range(_RETRIES_MAX):
        codes = await broker.transactions.verify(
            transactional_id, producer_id, producer_epoch, places, is_adding=is_adding
        )
        if not is_adding or ErrorCode.CONCURRENT_TRANSACTIONS not in codes.values():
            break
        await asyncio.sleep(_RETRY_PAUSE_S)
        take_guards()
    # What it says nothing of is not allowed.
    return {place: codes.get(place, ErrorCode.UNKNOWN_SERVER_ERROR) for place in places}


def refusal_of(code: ErrorCode, *, is_abortable_known: bool, try_again: ErrorCode) -> BrokerError | None:
    """None where the coordinator agreed. Older clients do not know that they may abort and go on (120)."""
    if code is ErrorCode.NONE:
        return None
    if code is ErrorCode.PRODUCER_FENCED:
        return BrokerError(ErrorCode.INVALID_PRODUCER_EPOCH, "a newer producer has this transactional id")
    if code in _TRY_AGAIN:
        return BrokerError(try_again, f"the transaction could not be verified: {code.name}")
    if code in (ErrorCode.INVALID_TXN_STATE, ErrorCode.TRANSACTION_ABORTABLE):
        known = ErrorCode.TRANSACTION_ABORTABLE if is_abortable_known else ErrorCode.INVALID_TXN_STATE
        return BrokerError(known, "the partition was not added to the transaction")
    return BrokerError(code)
