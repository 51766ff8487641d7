"""Records of `__consumer_offsets` in words: every key with its value, but for versions that are not known."""

from __future__ import annotations

import struct

from broker_engine.groups.consumer.records import Key as ConsumerKey
from broker_engine.groups.records import (
    GroupKey,
    GroupValue,
    OffsetKey,
    OffsetValue,
    UnknownGroupRecord,
    decode_consumer,
    decode_group,
    decode_key,
    decode_offset,
)
from broker_engine.tools.consumer_values import describe_consumer_value

_SHORT = struct.Struct(">h")
_NEW_STYLE_KEYS: dict[int, tuple[str, tuple[str, ...]]] = {
    3: ("consumer group", ("group",)),
    4: ("consumer group partitions", ("group",)),
    5: ("consumer group member", ("group", "member")),
    6: ("consumer group target assignment", ("group",)),
    7: ("consumer group target assignment of member", ("group", "member")),
    8: ("consumer group current assignment", ("group", "member")),
    16: ("consumer group regular expression", ("group", "expression")),
}
"""Of KIP-848 groups: their keys are told in words."""


def describe_key(key: bytes) -> str:
    """ValueError where it is none that we know."""
    try:
        decoded = decode_key(key)
    except UnknownGroupRecord:
        return _describe_new_style(key)
    if isinstance(decoded, ConsumerKey):
        return _describe_new_style(key)
    if isinstance(decoded, GroupKey):
        return f"group group={decoded.group}"
    return f"offset commit group={decoded.group} topic={decoded.topic} partition={decoded.partition}"


def describe_value(key: bytes, value: bytes | None) -> str:
    """ValueError where it is none that we know."""
    if value is None:
        return "removed"
    try:
        told = _describe_known(decode_key(key), value)
    except UnknownGroupRecord as error:
        if len(value) < _SHORT.size:
            raise ValueError("not a value of __consumer_offsets") from error
        told = ""
    return told or f"version {_SHORT.unpack_from(value)[0]}, {len(value)} bytes"


def _describe_known(key: OffsetKey | GroupKey | ConsumerKey, value: bytes) -> str:
    """Empty for the old metadata of KIP-848 groups, which nobody reads."""
    if isinstance(key, OffsetKey):
        return _describe_commit(decode_offset(value))
    if isinstance(key, GroupKey):
        return _describe_group(decode_group(value))
    return describe_consumer_value(decode_consumer(key, value).value)


def _describe_commit(committed: OffsetValue) -> str:
    return (
        f"offset={committed.offset} leader_epoch={committed.leader_epoch} metadata={committed.metadata} "
        f"commit_timestamp={committed.commit_timestamp}"
    )


def _describe_group(group: GroupValue) -> str:
    members = ", ".join(member.member_id for member in group.members)
    return (
        f"protocol_type={group.protocol_type} generation={group.generation} protocol={group.protocol} "
        f"leader={group.leader} members=[{members}]"
    )


def _describe_new_style(key: bytes) -> str:
    try:
        (kind,) = _SHORT.unpack_from(key)
        name, fields = _NEW_STYLE_KEYS[kind]
        position, words = _SHORT.size, []
        for field in fields:
            text, position = _read_text(key, position)
            words.append(f"{field}={text}")
    except (struct.error, KeyError, IndexError, UnicodeDecodeError) as error:
        raise ValueError("not a key of __consumer_offsets") from error
    return f"{name} {' '.join(words)}"


def _read_text(data: bytes, position: int) -> tuple[str, int]:
    (size,) = _SHORT.unpack_from(data, position)
    start = position + _SHORT.size
    end = start + max(size, 0)
    if end > len(data):
        raise IndexError("text beyond the end")
    return data[start:end].decode(), end
