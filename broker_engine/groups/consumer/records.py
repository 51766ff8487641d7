"""What a group of the consumer protocol writes to `__consumer_offsets`, in Kafka's own format (keys 3, 5-8 and 16).

Key 4, which Kafka wrote up to 4.0, is read as nothing: the hash in key 3 stands for it. In memory a record is one of
the small values below; `encode` and `decode` are for the log only, so that what happens live is not decoded again.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

from broker_engine.groups.consumer.member import ClassicFacts, MemberState, Standing, Subscription
from broker_engine.groups.consumer.partitions import Assigned, Partitions
from broker_engine.wire.errors import WireError
from broker_engine.wire.kinds import Array, Bytes, Int8, Int32, Int64, String, Uuid
from broker_engine.wire.primitives import NULL_UUID
from broker_engine.wire.schema import Struct, field

_NUMBER = struct.Struct(">h")
_VALUE_VERSION = 0
_HASH_OF_NOTHING = 0

S = TypeVar("S", bound=Struct)


# --- as they stand in memory


class GroupEpoch(NamedTuple):
    epoch: int
    metadata_hash: int = _HASH_OF_NOTHING


class TargetEpoch(NamedTuple):
    epoch: int
    timestamp: int = 0


class Regex(NamedTuple):
    topics: tuple[str, ...]
    """Physical texts, sorted."""
    version: int = 0
    timestamp: int = 0


class Key(NamedTuple):
    number: int
    group: str
    name: str = ""
    """The member, or the regular expression."""


@dataclass(frozen=True, slots=True)
class ConsumerRecord:
    key: Key
    value: Any
    """By the key's number a GroupEpoch, Subscription, TargetEpoch, Partitions, Standing or Regex; None removes it."""


GROUP_EPOCH, SUBSCRIPTION, TARGET_EPOCH, TARGET, STANDING, REGEX = 3, 5, 6, 7, 8, 16
_OLD_METADATA = 4
NUMBERS = frozenset({GROUP_EPOCH, _OLD_METADATA, SUBSCRIPTION, TARGET_EPOCH, TARGET, STANDING, REGEX})
_NAMED = frozenset({SUBSCRIPTION, TARGET, STANDING, REGEX})


# --- as they are written


class PlainKey(Struct, versions="3-16", flexible="none"):
    group: String = ""


class NamedKey(Struct, versions="3-16", flexible="none"):
    group: String = ""
    name: String = ""


class GroupEpochValue(Struct, versions="0", flexible="0+"):
    epoch: Int32 = 0
    metadata_hash: Int64 = field("0+", default=0, tag=0)


class ClassicProtocolValue(Struct):
    name: String = ""
    metadata: Bytes = b""


class ClassicMemberValue(Struct):
    is_present: Int8 = 0
    session_timeout_ms: Int32 = 0
    supported_protocols: Array[ClassicProtocolValue] = ()


class SubscriptionValue(Struct, versions="0", flexible="0+"):
    instance_id: String | None = None
    rack_id: String | None = None
    client_id: String = ""
    client_host: String = ""
    subscribed_topic_names: Array[String] = ()
    subscribed_topic_regex: String | None = None
    rebalance_timeout_ms: Int32 = -1
    server_assignor: String | None = None
    is_classic: Int8 = field("0+", default=-1, tag=0)
    """Kafka writes the tag also where nothing follows it: 0, and 1 before what is there."""


class ClassicSubscriptionValue(Struct, versions="0", flexible="0+"):
    """The same of a member that speaks the classic protocol."""

    instance_id: String | None = None
    rack_id: String | None = None
    client_id: String = ""
    client_host: String = ""
    subscribed_topic_names: Array[String] = ()
    subscribed_topic_regex: String | None = None
    rebalance_timeout_ms: Int32 = -1
    server_assignor: String | None = None
    classic: ClassicMemberValue = field("0+", default=ClassicMemberValue(), tag=0)


class TargetEpochValue(Struct, versions="0", flexible="0+"):
    assignment_epoch: Int32 = 0
    assignment_timestamp: Int64 = field("0+", default=0, tag=0)


class TargetTopicValue(Struct):
    topic_id: Uuid = NULL_UUID
    partitions: Array[Int32] = ()


class TargetValue(Struct, versions="0", flexible="0+"):
    topic_partitions: Array[TargetTopicValue] = ()


class AssignedTopicValue(Struct):
    topic_id: Uuid = NULL_UUID
    partitions: Array[Int32] = ()
    assignment_epochs: Array[Int32] = field("0+", default=(), tag=0)


class StandingValue(Struct, versions="0", flexible="0+"):
    member_epoch: Int32 = 0
    previous_member_epoch: Int32 = 0
    state: Int8 = 0
    assigned_partitions: Array[AssignedTopicValue] = ()
    partitions_pending_revocation: Array[AssignedTopicValue] = ()


class RegexValue(Struct, versions="0", flexible="0+"):
    topics: Array[String] = ()
    version: Int64 = 0
    timestamp: Int64 = 0


# --- there and back


def encode(record: ConsumerRecord) -> tuple[bytes, bytes | None]:
    key = record.key
    struct_key = NamedKey(group=key.group, name=key.name) if key.number in _NAMED else PlainKey(group=key.group)
    data = _NUMBER.pack(key.number) + struct_key.encode(key.number)
    if record.value is None:
        return data, None
    value: Struct = _TO_STRUCT[key.number](record.value)
    return data, _NUMBER.pack(_VALUE_VERSION) + value.encode(_VALUE_VERSION)


def decode_consumer_key(number: int, body: bytes) -> Key:
    """WireError where it is none."""
    if number in _NAMED:
        named = NamedKey.decode(body, number)
        return Key(number, named.group, named.name)
    return Key(number, PlainKey.decode(body, number).group)


def decode_consumer_value(key: Key, value: bytes) -> Any:
    """WireError where it is none. The old metadata of key 4 are nothing."""
    if key.number == _OLD_METADATA:
        return None
    if len(value) < _NUMBER.size or _NUMBER.unpack_from(value)[0] != _VALUE_VERSION:
        raise WireError(f"a value of key {key.number} in a version that is not known")
    return _FROM_BYTES[key.number](value[_NUMBER.size :])


def _of(struct_type: type[S], make: Callable[[S], Any]) -> Callable[[bytes], Any]:
    return lambda body: make(struct_type.decode(body, _VALUE_VERSION))


def _subscription_value(value: Subscription) -> Struct:
    common: dict[str, Any] = {
        "instance_id": value.instance_id,
        "rack_id": value.rack_id,
        "client_id": value.client_id,
        "client_host": value.client_host,
        "subscribed_topic_names": sorted(value.topic_names),
        "subscribed_topic_regex": value.topic_regex,
        "rebalance_timeout_ms": value.rebalance_timeout_ms,
        "server_assignor": value.server_assignor,
    }
    if value.classic is None:
        return SubscriptionValue(**common, is_classic=0)
    return ClassicSubscriptionValue(**common, classic=_classic_value(value.classic))


def _classic_value(facts: ClassicFacts) -> ClassicMemberValue:
    protocols = [ClassicProtocolValue(name=name, metadata=metadata) for name, metadata in facts.protocols]
    return ClassicMemberValue(is_present=1, session_timeout_ms=facts.session_timeout_ms, supported_protocols=protocols)


def _subscription(body: bytes) -> Subscription:
    value = SubscriptionValue.decode(body, _VALUE_VERSION)
    classic = None
    if value.is_classic == 1:
        classic = _classic_facts(ClassicSubscriptionValue.decode(body, _VALUE_VERSION).classic)
    return Subscription(
        instance_id=value.instance_id,
        rack_id=value.rack_id,
        client_id=value.client_id,
        client_host=value.client_host,
        topic_names=frozenset(value.subscribed_topic_names),
        topic_regex=value.subscribed_topic_regex,
        rebalance_timeout_ms=value.rebalance_timeout_ms,
        server_assignor=value.server_assignor,
        classic=classic,
    )


def _classic_facts(value: ClassicMemberValue) -> ClassicFacts:
    protocols = tuple((each.name, bytes(each.metadata)) for each in value.supported_protocols)
    return ClassicFacts(value.session_timeout_ms, protocols)


def _target_value(value: Partitions) -> TargetValue:
    return TargetValue(
        topic_partitions=[TargetTopicValue(topic_id=each, partitions=sorted(value[each])) for each in sorted(value)]
    )


def _target(value: TargetValue) -> Partitions:
    return {each.topic_id: frozenset(each.partitions) for each in value.topic_partitions if each.partitions}


def _standing_value(value: Standing) -> StandingValue:
    return StandingValue(
        member_epoch=value.epoch,
        previous_member_epoch=value.previous_epoch,
        state=value.state,
        assigned_partitions=_assigned_value(value.assigned),
        partitions_pending_revocation=_assigned_value(value.revoking),
    )


def _assigned_value(assigned: Assigned) -> list[AssignedTopicValue]:
    return [_assigned_topic(topic_id, assigned[topic_id]) for topic_id in sorted(assigned)]


def _assigned_topic(topic_id: Any, epochs: Mapping[int, int]) -> AssignedTopicValue:
    indexes = sorted(epochs)
    return AssignedTopicValue(
        topic_id=topic_id, partitions=indexes, assignment_epochs=[epochs[index] for index in indexes]
    )


def _standing(value: StandingValue) -> Standing:
    is_known = value.state in set(MemberState)
    return Standing(
        epoch=value.member_epoch,
        previous_epoch=value.previous_member_epoch,
        state=MemberState(value.state) if is_known else MemberState.UNKNOWN,
        assigned=_assigned(value.assigned_partitions, value.member_epoch),
        revoking=_assigned(value.partitions_pending_revocation, value.member_epoch),
    )


def _assigned(topics: Any, member_epoch: int) -> Assigned:
    """Kafka before 4.3 wrote no epochs: then the member's own is the latest that it can have been."""
    return {each.topic_id: _epochs(each, member_epoch) for each in topics if each.partitions}


def _epochs(topic: AssignedTopicValue, member_epoch: int) -> dict[int, int]:
    if len(topic.assignment_epochs) != len(topic.partitions):
        return dict.fromkeys(topic.partitions, member_epoch)
    return dict(zip(topic.partitions, topic.assignment_epochs, strict=True))


_TO_STRUCT: dict[int, Callable[[Any], Struct]] = {
    GROUP_EPOCH: lambda value: GroupEpochValue(epoch=value.epoch, metadata_hash=value.metadata_hash),
    SUBSCRIPTION: _subscription_value,
    TARGET_EPOCH: lambda value: TargetEpochValue(assignment_epoch=value.epoch, assignment_timestamp=value.timestamp),
    TARGET: _target_value,
    STANDING: _standing_value,
    REGEX: lambda value: RegexValue(topics=value.topics, version=value.version, timestamp=value.timestamp),
}
_FROM_BYTES: dict[int, Callable[[bytes], Any]] = {
    GROUP_EPOCH: _of(GroupEpochValue, lambda value: GroupEpoch(value.epoch, value.metadata_hash)),
    SUBSCRIPTION: _subscription,
    TARGET_EPOCH: _of(TargetEpochValue, lambda value: TargetEpoch(value.assignment_epoch, value.assignment_timestamp)),
    TARGET: _of(TargetValue, _target),
    STANDING: _of(StandingValue, _standing),
    REGEX: _of(RegexValue, lambda value: Regex(tuple(value.topics), value.version, value.timestamp)),
}
