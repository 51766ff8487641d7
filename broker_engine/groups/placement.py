"""Which partition of `__consumer_offsets` holds a group: Java's hash of its name, so that Kafka's tools agree."""

from __future__ import annotations

from functools import lru_cache

_INT_MASK = 0x7FFFFFFF
_HASHES_KEPT = 10_000
_KEPT_LENGTH_MAX = 255
"""Names may be long: what is kept of them is bounded in bytes too."""


def java_hash(text: str) -> int:
    """String.hashCode with the sign bit masked. Every heartbeat asks, so the hashes of names in use are kept."""
    return _kept_hash(text) if len(text) <= _KEPT_LENGTH_MAX else _hash(text)


def _hash(text: str) -> int:
    """Over UTF-16 units, as Java counts them."""
    units = text.encode("utf-16-be", "surrogatepass")
    value = 0
    for position in range(0, len(units), 2):
        value = (31 * value + (units[position] << 8 | units[position + 1])) & 0xFFFFFFFF
    return value & _INT_MASK


_kept_hash = lru_cache(maxsize=_HASHES_KEPT)(_hash)


def group_partition(group: str, partition_count: int) -> int:
    return java_hash(group) % partition_count
