"""What members of a classic group tell each other, in Kafka's own bytes, and the range assignor. Pure.

Written as version 1 of the consumer protocol; any version is read, since later ones only add fields at the end. Left
out: racks, cooperative rebalancing.
"""

from __future__ import annotations

import struct
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from broker_engine.client.errors import KafkaError
from broker_engine.client.model import TopicPartition
from broker_engine.errors import ErrorCode

PROTOCOL_TYPE = "consumer"
RANGE = "range"

_VERSION = 1
_NULL = -1
_INT16 = struct.Struct(">h")
_INT32 = struct.Struct(">i")


@dataclass(frozen=True, slots=True)
class GroupIdentity:
    """Who commits: a member of a generation, or nobody in particular (generation -1), for a group without members."""

    group_id: str
    generation: int = -1
    member_id: str = ""
    instance_id: str | None = None


@dataclass(frozen=True, slots=True)
class Subscription:
    topics: tuple[str, ...]
    owned: tuple[TopicPartition, ...] = ()


@dataclass(frozen=True, slots=True)
class JoinedMember:
    member_id: str
    instance_id: str | None
    topics: tuple[str, ...]


# --- bytes


def encode_subscription(subscription: Subscription) -> bytes:
    out = bytearray(_INT16.pack(_VERSION))
    out += _INT32.pack(len(subscription.topics))
    for topic in subscription.topics:
        _write_string(out, topic)
    out += _INT32.pack(_NULL)  # user data
    _write_partitions(out, subscription.owned)
    return bytes(out)


def decode_subscription(data: bytes) -> Subscription:
    reader = _Reader(data)
    version = reader.int16()
    topics = tuple(reader.string() for _ in range(reader.count()))
    reader.skip_bytes()
    owned = reader.partitions() if version >= 1 and reader.has_more else ()
    return Subscription(topics, owned)


def encode_assignment(partitions: Iterable[TopicPartition]) -> bytes:
    out = bytearray(_INT16.pack(_VERSION))
    _write_partitions(out, partitions)
    out += _INT32.pack(_NULL)
    return bytes(out)


def decode_assignment(data: bytes) -> tuple[TopicPartition, ...]:
    """Empty bytes: the leader gave this member nothing."""
    if not data:
        return ()
    reader = _Reader(data)
    reader.int16()
    return reader.partitions()


def _write_string(out: bytearray, text: str) -> None:
    encoded = text.encode()
    out += _INT16.pack(len(encoded)) + encoded


def _write_partitions(out: bytearray, partitions: Iterable[TopicPartition]) -> None:
    by_topic: defaultdict[str, list[int]] = defaultdict(list)
    for topic, index in partitions:
        by_topic[topic].append(index)
    out += _INT32.pack(len(by_topic))
    for topic, indexes in by_topic.items():
        _write_string(out, topic)
        out += _INT32.pack(len(indexes))
        for index in indexes:
            out += _INT32.pack(index)


class _Reader:
    """Another member wrote it, in whatever language: hostile until read."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._position = 0

    @property
    def has_more(self) -> bool:
        return self._position < len(self._data)

    def _take(self, size_bytes: int) -> bytes:
        end = self._position + size_bytes
        if size_bytes < 0 or end > len(self._data):
            raise KafkaError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, "another member's subscription cannot be read")
        taken, self._position = self._data[self._position : end], end
        return taken

    def int16(self) -> int:
        return int(_INT16.unpack(self._take(_INT16.size))[0])

    def int32(self) -> int:
        return int(_INT32.unpack(self._take(_INT32.size))[0])

    def count(self) -> int:
        """Of an array whose elements take two bytes at least: a bound before anything is made."""
        count = self.int32()
        if count * 2 > len(self._data):
            raise KafkaError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, f"{count} elements in {len(self._data)} bytes")
        return max(count, 0)

    def string(self) -> str:
        return self._take(self.int16()).decode(errors="replace")

    def skip_bytes(self) -> None:
        self._take(max(self.int32(), 0))

    def partitions(self) -> tuple[TopicPartition, ...]:
        found: list[TopicPartition] = []
        for _ in range(self.count()):
            topic = self.string()
            found += [TopicPartition(topic, self.int32()) for _ in range(self.count())]
        return tuple(found)


# --- the range assignor


def assign_ranges(
    members: Sequence[JoinedMember], partition_counts: Mapping[str, int]
) -> dict[str, list[TopicPartition]]:
    """Per topic: members in order get consecutive partitions, the first ones one more where it does not come out even.

    In order: static members by their instance id before the others by their member id, as Kafka's assignor has it.
    """
    assigned: dict[str, list[TopicPartition]] = {member.member_id: [] for member in members}
    ordered = sorted(members, key=_rank)
    for topic in sorted(partition_counts):
        takers = [member for member in ordered if topic in member.topics]
        if takers:
            _assign_topic(topic, partition_counts[topic], takers, assigned)
    return assigned


def _rank(member: JoinedMember) -> tuple[bool, str]:
    return member.instance_id is None, member.instance_id or member.member_id


def _assign_topic(
    topic: str, partition_count: int, takers: Sequence[JoinedMember], assigned: dict[str, list[TopicPartition]]
) -> None:
    share, extra = divmod(partition_count, len(takers))
    start = 0
    for number, member in enumerate(takers):
        stop = start + share + (number < extra)
        assigned[member.member_id] += [TopicPartition(topic, index) for index in range(start, stop)]
        start = stop
