"""What stands in `__consumer_offsets`, in Kafka's own format: its formatters read our topic, and we read Kafka's.

A key is a type number and its fields; a value is a version number and its fields. Names are physical texts
(contracts.md section 3). A null value removes the key. The records of the consumer protocol are in consumer/records.py.
"""

from __future__ import annotations

import struct
from typing import NamedTuple, TypeVar

from broker_engine.groups.consumer.records import NUMBERS as CONSUMER_NUMBERS
from broker_engine.groups.consumer.records import ConsumerRecord, Key, decode_consumer_key, decode_consumer_value
from broker_engine.wire.errors import WireError
from broker_engine.wire.kinds import Array, Bytes, Int32, Int64, String, Uuid
from broker_engine.wire.primitives import NULL_UUID
from broker_engine.wire.schema import Struct, field

_NUMBER = struct.Struct(">h")
_OFFSET_KEY_TYPES = (0, 1)
_OFFSET_KEY_TYPE = 1
_GROUP_KEY_TYPE = 2
OFFSET_VALUE_VERSION = 4
_OFFSET_VALUE_VERSION_WITH_EXPIRY = 1
GROUP_VALUE_VERSION = 3

V = TypeVar("V", bound=Struct)


class UnknownGroupRecord(Exception):  # noqa: N818 - reads as what it is
    """A key of a type that we do not keep, or bytes that are none."""


class OffsetKey(Struct, versions="0-1", flexible="none"):
    group: String = ""
    topic: String = ""
    partition: Int32 = 0


class OffsetValue(Struct, versions="0-4", flexible="4+"):
    offset: Int64 = 0
    leader_epoch: Int32 = field("3+", default=-1, ignorable=True)
    metadata: String = ""
    commit_timestamp: Int64 = 0
    expire_timestamp: Int64 = field("1", default=-1, ignorable=True)
    topic_id: Uuid = field("4+", default=NULL_UUID, tag=0, ignorable=True)


class GroupKey(Struct, versions="2", flexible="none"):
    group: String = ""


class GroupMemberValue(Struct):
    member_id: String = ""
    group_instance_id: String | None = field("3+", default=None, ignorable=True)
    client_id: String = ""
    client_host: String = ""
    rebalance_timeout: Int32 = field("1+", default=-1, ignorable=True)
    session_timeout: Int32 = 0
    subscription: Bytes = b""
    assignment: Bytes = b""


class GroupValue(Struct, versions="0-4", flexible="4+"):
    protocol_type: String = ""
    generation: Int32 = 0
    protocol: String | None = None
    leader: String | None = None
    current_state_timestamp: Int64 = field("2+", default=-1, ignorable=True)
    members: Array[GroupMemberValue] = ()


class GroupRecord(NamedTuple):
    """One record as it is written: `value` None removes the key."""

    key: bytes
    value: bytes | None


def offset_record(key: OffsetKey, value: OffsetValue | None) -> GroupRecord:
    data = None if value is None else _offset_value(value)
    return GroupRecord(_with_number(_OFFSET_KEY_TYPE, key.encode(_OFFSET_KEY_TYPE)), data)


def _offset_value(value: OffsetValue) -> bytes:
    """Only version 1 can say when it ends; it has no leader epoch and no topic id, as with Kafka."""
    number = OFFSET_VALUE_VERSION if value.expire_timestamp < 0 else _OFFSET_VALUE_VERSION_WITH_EXPIRY
    return _with_number(number, value.encode(number))


def group_record(group: str, value: GroupValue | None) -> GroupRecord:
    data = None if value is None else _with_number(GROUP_VALUE_VERSION, value.encode(GROUP_VALUE_VERSION))
    return GroupRecord(_with_number(_GROUP_KEY_TYPE, GroupKey(group=group).encode(_GROUP_KEY_TYPE)), data)


def decode_key(key: bytes) -> OffsetKey | GroupKey | Key:
    """UnknownGroupRecord for any other: a reader passes over it."""
    number, body = _split(key)
    try:
        if number in CONSUMER_NUMBERS:
            return decode_consumer_key(number, body)
        if number in _OFFSET_KEY_TYPES:
            return OffsetKey.decode(body, number)
        if number == _GROUP_KEY_TYPE:
            return GroupKey.decode(body, number)
    except WireError as error:
        raise UnknownGroupRecord(f"key of type {number}: {error}") from error
    raise UnknownGroupRecord(f"key of type {number}")


def decode_consumer(key: Key, value: bytes | None) -> ConsumerRecord:
    try:
        return ConsumerRecord(key, None if value is None else decode_consumer_value(key, value))
    except WireError as error:
        raise UnknownGroupRecord(f"key of type {key.number}: {error}") from error


def decode_offset(value: bytes) -> OffsetValue:
    return _decode(OffsetValue, value)


def decode_group(value: bytes) -> GroupValue:
    return _decode(GroupValue, value)


def _decode(value_type: type[V], value: bytes) -> V:
    version, body = _split(value)
    try:
        return value_type.decode(body, version)
    except WireError as error:
        raise UnknownGroupRecord(f"{value_type.__name__} version {version}: {error}") from error


def _split(data: bytes) -> tuple[int, bytes]:
    if len(data) < _NUMBER.size:
        raise UnknownGroupRecord("cut short")
    return _NUMBER.unpack_from(data)[0], data[_NUMBER.size :]


def _with_number(number: int, body: bytes) -> bytes:
    return _NUMBER.pack(number) + body
