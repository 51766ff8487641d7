"""What members of classic consumer groups write inside their own bytes: Kafka's ConsumerProtocol, versions 0-3.

The broker reads it to tell how many partitions moved, which topics a living group reads, and to take classic members
into a group of the consumer protocol; there it also writes it. Anybody may send anything here: what cannot be read is
None, and what is too long to be worth reading is not read. Names are as the client wrote them.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping
from typing import TypeVar

from broker_engine.wire.errors import WireError
from broker_engine.wire.kinds import Array, Bytes, Int32, String
from broker_engine.wire.schema import Struct, field

PROTOCOL_TYPE = "consumer"
_VERSION = struct.Struct(">h")
_VERSION_MAX = 3
_READ_BYTES_MAX = 1 << 20
_MEMORY_BYTES_MAX = 16 << 20

S = TypeVar("S", bound=Struct)


class ProtocolTopic(Struct):
    topic: String = ""
    partitions: Array[Int32] = ()


class ProtocolSubscription(Struct, versions="0-3", flexible="none"):
    topics: Array[String] = ()
    user_data: Bytes | None = None
    owned_partitions: Array[ProtocolTopic] = field("1+", default=(), ignorable=True)
    generation_id: Int32 = field("2+", default=-1, ignorable=True)
    rack_id: String | None = field("3+", default=None, ignorable=True)


class ProtocolAssignment(Struct, versions="0-3", flexible="none"):
    assigned_partitions: Array[ProtocolTopic] = ()
    user_data: Bytes | None = None


def read_subscription(data: bytes) -> ProtocolSubscription | None:
    return _read(ProtocolSubscription, data)


def read_assignment(data: bytes) -> dict[str, tuple[int, ...]] | None:
    """Partitions by topic. No bytes at all are an empty assignment: a leader may leave a member out."""
    if not data:
        return {}
    found = _read(ProtocolAssignment, data)
    return None if found is None else by_topic(found.assigned_partitions)


def by_topic(topics: Iterable[ProtocolTopic]) -> dict[str, tuple[int, ...]]:
    return {each.topic: tuple(each.partitions) for each in topics}


def write_assignment(partitions: Mapping[str, Iterable[int]], version: int) -> bytes:
    version = min(max(version, 0), _VERSION_MAX)
    topics = [ProtocolTopic(topic=topic, partitions=sorted(partitions[topic])) for topic in sorted(partitions)]
    return _VERSION.pack(version) + ProtocolAssignment(assigned_partitions=topics).encode(version)


def version_of(data: bytes) -> int:
    return int(_VERSION.unpack_from(data)[0]) if len(data) >= _VERSION.size else 0


def _read(struct_type: type[S], data: bytes) -> S | None:
    if not _VERSION.size <= len(data) <= _READ_BYTES_MAX:
        return None
    version = version_of(data)
    if version < 0:
        return None
    try:
        # A newer version only adds at the end.
        return struct_type.decode(data[_VERSION.size :], min(version, _VERSION_MAX), memory_bytes_max=_MEMORY_BYTES_MAX)
    except WireError:
        return None
