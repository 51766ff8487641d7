"""How long transactional ids may be, and how many there may be of one tenant."""

from __future__ import annotations

import pytest

from broker_engine.errors import BrokerError, ErrorCode
from broker_engine.transactions.records import removal_record, transaction_record
from broker_engine.transactions.shard import ID_BYTES_MAX, TransactionShard
from broker_engine.transactions.transaction import Transaction
from broker_engine.wire.errors import WireError


def transaction(name: str) -> Transaction:
    return Transaction(
        transactional_id=name, producer_id=1, producer_epoch=0, previous_producer_id=1, timeout_ms=1, updated_ms=0
    )


def refusal(shard: TransactionShard, name: str) -> ErrorCode:
    try:
        shard.check_new(name)
    except BrokerError as error:
        return error.code
    return ErrorCode.NONE


def test_an_id_that_fits_no_record_leaves_nothing_behind() -> None:
    shard = TransactionShard()
    name = "demo/" + "x" * 32_767
    with pytest.raises(WireError):
        shard.begin(transaction(name))
    assert not shard.is_pending(name)


def test_a_long_id_is_refused_unless_it_is_known_already() -> None:
    shard = TransactionShard()
    long, longest = "é" * (ID_BYTES_MAX // 2) + "x", "é" * (ID_BYTES_MAX // 2)
    assert refusal(shard, longest) is ErrorCode.NONE
    assert refusal(shard, long) is ErrorCode.INVALID_REQUEST
    shard.replay(*transaction_record(transaction(long)), 0)
    assert refusal(shard, long) is ErrorCode.NONE


def test_one_tenant_cannot_take_the_room_of_the_others() -> None:
    shard = TransactionShard(ids_max=5, tenant_ids_max=2)
    shard.replay(*transaction_record(transaction("acme/stored")), 0)
    shard.begin(transaction("acme/being-written"))
    assert refusal(shard, "acme/one-more") is ErrorCode.POLICY_VIOLATION
    assert refusal(shard, "acme/stored") is ErrorCode.NONE
    assert refusal(shard, "globex/first") is ErrorCode.NONE
    for number in range(3):
        assert refusal(shard, f"root-{number}") is ErrorCode.NONE
        shard.replay(*transaction_record(transaction(f"root-{number}")), 0)
    assert refusal(shard, "globex/first") is ErrorCode.POLICY_VIOLATION


def test_what_is_removed_or_was_not_written_makes_room_again() -> None:
    shard = TransactionShard(tenant_ids_max=1)
    shard.begin(transaction("acme/a"))
    shard.settle("acme/a", 0, is_acked=False)
    shard.begin(transaction("acme/b"))
    shard.settle("acme/b", 0, is_acked=True)
    assert refusal(shard, "acme/c") is ErrorCode.POLICY_VIOLATION
    shard.replay(*removal_record("acme/never-there"), 0)
    assert refusal(shard, "acme/c") is ErrorCode.POLICY_VIOLATION
    shard.begin_removal("acme/b")
    shard.settle("acme/b", 0, is_acked=True)
    assert refusal(shard, "acme/c") is ErrorCode.NONE
