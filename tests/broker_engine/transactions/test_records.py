"""`__transaction_state` as a real Kafka wrote it: read, and written again byte for byte."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from broker_engine.records.batch import decode_records, iter_batches
from broker_engine.transactions.records import (
    TransactionValue,
    UnknownTransactionRecord,
    decode_key,
    decode_value,
    removal_record,
    transaction_record,
)
from broker_engine.transactions.shard import TransactionShard
from broker_engine.transactions.states import TransactionState
from broker_engine.transactions.transaction import Transaction

SEGMENT = Path(__file__).parents[2] / "golden/segments/__transaction_state-0"


def stored_records() -> list[tuple[bytes, bytes]]:
    data = (SEGMENT / "00000000000000000000.log").read_bytes()
    records = [record for batch in iter_batches(data) for record in decode_records(batch, max_bytes=1 << 20)]
    return [(record.key or b"", record.value or b"") for record in records]


def test_kafkas_records_are_written_again_byte_for_byte() -> None:
    for key, value in stored_records():
        assert transaction_record(decode_value(decode_key(key), value)) == (key, value)


def test_kafkas_records_mean_what_its_formatter_prints() -> None:
    rows = [json.loads(line) for line in (SEGMENT / "decoded.jsonl").read_text().splitlines()]
    for row, (key, value) in zip(rows, stored_records(), strict=True):
        transaction, printed = decode_value(decode_key(key), value), row["value"]["data"]
        assert transaction.transactional_id == row["key"]["data"]["transactionalId"]
        assert transaction.producer_id == printed["producerId"]
        assert transaction.producer_epoch == printed["producerEpoch"]
        assert transaction.state == printed["transactionStatus"]
        assert transaction.started_ms == printed["transactionStartTimestampMs"]
        assert transaction.client_version == printed.get("clientTransactionVersion", 0)


def test_a_log_of_kafkas_becomes_what_it_says_last() -> None:
    shard = TransactionShard()
    for key, value in stored_records():
        shard.replay(key, value, 0)
    states = {name: (each.state.text, each.producer_epoch) for name, each in shard.transactions.items()}
    assert states == {
        "tx-a": ("CompleteAbort", 7),
        "tx-b": ("CompleteAbort", 1),
        "tx-c": ("CompleteAbort", 2),
        "tx-open": ("Ongoing", 0),
    }


def test_the_version_before_transaction_version_1_is_read() -> None:
    value = TransactionValue(producer_id=4, producer_epoch=2, transaction_status=4, transaction_partitions=[])
    transaction = decode_value("t", b"\0\0" + value.encode(0))
    assert (transaction.state, transaction.previous_producer_id) == (TransactionState.COMPLETE_COMMIT, -1)


@pytest.mark.parametrize("key", [b"", b"\0", b"\0\1\0\1t", b"\0\0\0\5t"])
def test_a_key_that_is_none_is_named(key: bytes) -> None:
    with pytest.raises(UnknownTransactionRecord):
        decode_key(key)


@pytest.mark.parametrize("value", [b"", b"\0\7", b"\0\1\0\0"])
def test_a_value_that_is_none_is_named(value: bytes) -> None:
    with pytest.raises(UnknownTransactionRecord):
        decode_value("t", value)


def test_a_state_that_is_none_is_named() -> None:
    value = TransactionValue(transaction_status=77)
    with pytest.raises(UnknownTransactionRecord):
        decode_value("t", b"\0\1" + value.encode(1))


# --- the shard


def transaction(state: TransactionState, **fields: int) -> Transaction:
    given: dict[str, Any] = {"timeout_ms": 100, "updated_ms": 0, **fields}
    return Transaction(
        transactional_id="t", producer_id=1, producer_epoch=0, previous_producer_id=1, state=state, **given
    )


def test_nothing_is_shown_before_it_is_acknowledged() -> None:
    shard = TransactionShard()
    empty = transaction(TransactionState.EMPTY)
    shard.begin(empty)
    assert shard.is_pending("t")
    assert shard.find("t") is None
    shard.settle("t", 0, is_acked=True)
    assert shard.find("t") is empty
    assert not shard.is_pending("t")


def test_what_was_not_acknowledged_leaves_all_as_it_was() -> None:
    shard = TransactionShard()
    shard.replay(*transaction_record(transaction(TransactionState.EMPTY)), 0)
    shard.begin(transaction(TransactionState.ONGOING))
    shard.settle("t", 0, is_acked=False)
    found = shard.find("t")
    assert found is not None
    assert found.state is TransactionState.EMPTY


def test_a_removal_takes_the_id_away_when_it_is_acknowledged() -> None:
    shard = TransactionShard()
    shard.replay(*transaction_record(transaction(TransactionState.EMPTY)), 0)
    assert shard.begin_removal("t") == removal_record("t")
    assert shard.find("t") is not None
    shard.settle("t", 0, is_acked=True)
    assert shard.find("t") is None


def test_a_null_value_removes_the_id() -> None:
    shard = TransactionShard()
    shard.replay(*transaction_record(transaction(TransactionState.ONGOING)), 0)
    shard.replay(*removal_record("t"), 5)
    assert not shard.transactions
    assert shard.timed_out(10_000) == []


def test_a_transaction_has_its_full_time_from_when_this_coordinator_knew_of_it() -> None:
    shard = TransactionShard()
    open_one = transaction(TransactionState.ONGOING, started_ms=1)
    shard.replay(*transaction_record(open_one), 5_000)
    shard.replay(*transaction_record(open_one), 5_050)  # another partition: the same transaction
    assert shard.timed_out(5_099) == []
    assert [each.transactional_id for each in shard.timed_out(5_100)] == ["t"]


def test_what_is_being_changed_does_not_time_out() -> None:
    shard = TransactionShard()
    shard.replay(*transaction_record(transaction(TransactionState.ONGOING)), 0)
    shard.begin(transaction(TransactionState.PREPARE_COMMIT))
    assert shard.timed_out(1_000) == []


def test_what_was_decided_is_found_again_after_a_restart() -> None:
    shard = TransactionShard()
    shard.replay(*transaction_record(transaction(TransactionState.PREPARE_COMMIT)), 0)
    assert [each.transactional_id for each in shard.preparing()] == ["t"]


def test_ids_expire_by_their_last_use() -> None:
    shard = TransactionShard()
    shard.replay(*transaction_record(transaction(TransactionState.EMPTY, updated_ms=1_000)), 0)
    assert shard.expired(1_099, 100) == []
    assert shard.expired(1_100, 100) == ["t"]
    shard.begin(transaction(TransactionState.EMPTY, updated_ms=1_000))
    assert shard.expired(1_100, 100) == []
