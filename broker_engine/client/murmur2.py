"""murmur2 as the Java client computes it: the same key must meet the same partition whoever sends it.

librdkafka's default partitioner hashes with CRC-32 instead ("consistent_random"): set `partitioner=murmur2_random`
there where Python, Java and librdkafka producers share a topic.
"""

from __future__ import annotations

from struct import iter_unpack

_MULTIPLIER = 0x5BD1E995
_SEED = 0x9747B28C
_MASK = 0xFFFFFFFF


def murmur2(data: bytes) -> int:
    """The hash as an unsigned 32-bit number (Java shows it signed)."""
    whole_bytes = len(data) & ~3
    value = _SEED ^ len(data)
    for (word,) in iter_unpack("<I", data[:whole_bytes]):
        mixed = (word * _MULTIPLIER) & _MASK
        mixed = ((mixed ^ (mixed >> 24)) * _MULTIPLIER) & _MASK
        value = ((value * _MULTIPLIER) & _MASK) ^ mixed
    tail = data[whole_bytes:]
    if tail:
        value = ((value ^ int.from_bytes(tail, "little")) * _MULTIPLIER) & _MASK
    value = ((value ^ (value >> 13)) * _MULTIPLIER) & _MASK
    return value ^ (value >> 15)


def partition_for_key(key: bytes, partition_count: int) -> int:
    """Java's `toPositive(murmur2(key)) % partitions`: over all partitions, with or without a leader."""
    return (murmur2(key) & 0x7FFFFFFF) % partition_count
