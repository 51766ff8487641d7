"""What stands in `__transaction_state`, in Kafka's own format: its formatter reads our topic, and we read Kafka's.

A key is version 0 and the transactional id, as a physical text (contracts.md section 3). A value is written in version
1; version 0, which Kafka writes before transaction.version is set, is read as well. A null value removes the id.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

from broker_engine.transactions.states import TransactionState
from broker_engine.transactions.transaction import NO_PRODUCER_ID, TopicPartition, Transaction
from broker_engine.wire.errors import WireError
from broker_engine.wire.kinds import Array, Int8, Int16, Int32, Int64, String
from broker_engine.wire.schema import Struct, field

_NUMBER = struct.Struct(">h")
_KEY_VERSION = 0
_VALUE_VERSION = 1

Record = tuple[bytes, bytes | None]


class UnknownTransactionRecord(Exception):  # noqa: N818 - reads as what it is
    """A key or a value of a version that we do not know, or bytes that are none."""


class TransactionKey(Struct, versions="0", flexible="none"):
    transactional_id: String = ""


class PartitionsValue(Struct):
    topic: String = ""
    partition_ids: Array[Int32] = ()


class TransactionValue(Struct, versions="0-1", flexible="1+"):
    producer_id: Int64 = 0
    previous_producer_id: Int64 = field("1+", default=NO_PRODUCER_ID, tag=0, ignorable=True)
    next_producer_id: Int64 = field("1+", default=NO_PRODUCER_ID, tag=1, ignorable=True)
    producer_epoch: Int16 = 0
    transaction_timeout_ms: Int32 = 0
    transaction_status: Int8 = 0
    transaction_partitions: Array[PartitionsValue] | None = ()
    transaction_last_update_timestamp_ms: Int64 = 0
    transaction_start_timestamp_ms: Int64 = 0
    client_transaction_version: Int16 = field("1+", default=0, tag=2, ignorable=True)


def transaction_record(transaction: Transaction) -> Record:
    value = TransactionValue(
        producer_id=transaction.producer_id,
        previous_producer_id=transaction.previous_producer_id,
        next_producer_id=transaction.next_producer_id,
        producer_epoch=transaction.producer_epoch,
        transaction_timeout_ms=transaction.timeout_ms,
        transaction_status=transaction.state,
        transaction_partitions=_by_topic(transaction),
        transaction_last_update_timestamp_ms=transaction.updated_ms,
        transaction_start_timestamp_ms=transaction.started_ms,
        client_transaction_version=transaction.client_version,
    )
    return _key(transaction.transactional_id), _NUMBER.pack(_VALUE_VERSION) + value.encode(_VALUE_VERSION)


def removal_record(transactional_id: str) -> Record:
    return _key(transactional_id), None


def decode_key(key: bytes) -> str:
    version, body = _split(key)
    if version != _KEY_VERSION:
        raise UnknownTransactionRecord(f"key of version {version}")
    try:
        return TransactionKey.decode(body, version).transactional_id
    except WireError as error:
        raise UnknownTransactionRecord(f"key: {error}") from error


def decode_value(transactional_id: str, data: bytes) -> Transaction:
    version, body = _split(data)
    try:
        value = TransactionValue.decode(body, version)
        state = TransactionState(value.transaction_status)
    except (WireError, ValueError) as error:
        raise UnknownTransactionRecord(f"value of version {version}: {error}") from error
    return Transaction(
        transactional_id=transactional_id,
        producer_id=value.producer_id,
        producer_epoch=value.producer_epoch,
        previous_producer_id=value.previous_producer_id,
        next_producer_id=value.next_producer_id,
        timeout_ms=value.transaction_timeout_ms,
        state=state,
        partitions=_places(value.transaction_partitions or ()),
        started_ms=value.transaction_start_timestamp_ms,
        updated_ms=value.transaction_last_update_timestamp_ms,
        client_version=value.client_transaction_version,
    )


def _by_topic(transaction: Transaction) -> list[PartitionsValue] | None:
    """None, as Kafka has it, where there is no transaction."""
    if transaction.state is TransactionState.EMPTY:
        return None
    topics: dict[str, list[int]] = {}
    for topic, partition in transaction.partitions:
        topics.setdefault(topic, []).append(partition)
    return [PartitionsValue(topic=topic, partition_ids=ids) for topic, ids in topics.items()]


def _places(topics: Sequence[PartitionsValue]) -> tuple[TopicPartition, ...]:
    return tuple((each.topic, partition) for each in topics for partition in each.partition_ids)


def _key(transactional_id: str) -> bytes:
    return _NUMBER.pack(_KEY_VERSION) + TransactionKey(transactional_id=transactional_id).encode(_KEY_VERSION)


def _split(data: bytes) -> tuple[int, bytes]:
    if len(data) < _NUMBER.size:
        raise UnknownTransactionRecord("cut short")
    return _NUMBER.unpack_from(data)[0], data[_NUMBER.size :]
