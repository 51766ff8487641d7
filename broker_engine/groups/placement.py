"""Which partition of `__consumer_offsets` holds a group: Java's hash of its name, so that Kafka's tools agree."""

from __future__ import annotations

_INT_MASK = 0x7FFFFFFF


def java_hash(text: str) -> int:
    """String.hashCode with the sign bit masked: over UTF-16 units, as Java counts them."""
    units = text.encode("utf-16-be", "surrogatepass")
    value = 0
    for position in range(0, len(units), 2):
        value = (31 * value + (units[position] << 8 | units[position + 1])) & 0xFFFFFFFF
    return value & _INT_MASK


def group_partition(group: str, partition_count: int) -> int:
    return java_hash(group) % partition_count
