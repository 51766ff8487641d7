"""Which partition a record goes to: the one asked for, its key's, or, without a key, one per batch."""

from __future__ import annotations

from collections.abc import Callable, Collection

from broker_engine.client.murmur2 import partition_for_key


class StickyPartitioner:
    """Pure but for the random source that it is given. One per producer."""

    def __init__(self, random_unit: Callable[[], float]) -> None:
        self._random_unit = random_unit
        self._current: dict[str, int] = {}

    def for_key(self, key: bytes, partition_count: int) -> int:
        return partition_for_key(key, partition_count)

    def current(self, topic: str, led: Collection[int]) -> int | None:
        """The partition that keyless records go to now; None when there is none yet or it has lost its leader."""
        partition = self._current.get(topic)
        return partition if partition in led else None

    def move_on(self, topic: str, led: Collection[int], partition_count: int) -> int:
        """Choose the next partition: by lot among those with a leader, another than before where there is one.

        Without any leader the lot falls on all: the records wait there until a leader is elected.
        """
        candidates = sorted(led) if led else range(partition_count)
        previous = self._current.get(topic)
        others = [partition for partition in candidates if partition != previous] or list(candidates)
        chosen = others[int(self._random_unit() * len(others))]
        self._current[topic] = chosen
        return chosen
