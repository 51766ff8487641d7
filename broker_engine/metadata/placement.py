"""Where replicas go: racks first, then hosts, then a rule that spreads leaders and followers evenly.

With the n brokers in a row, s the topic's start and r = i div n: partition i is led by broker (s + i) mod n, and its
j-th follower stands (1 + (s' + r + j - 1) mod (n - 1)) places further on. So leaders are even, a dead broker's leaders
spread over all others, and broker 0 does not lead partition 0 of every topic. s = s' = 0 is the textbook table.
Racks come first where brokers name them, hosts next: the row alternates between them, and each follower takes the
first place of its turn whose rack, then host, holds the fewest replicas of the partition so far.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import zip_longest
from uuid import UUID

from broker_engine.metadata.parts import BrokerImage


def starts_of(topic_id: UUID, broker_count: int) -> tuple[int, int]:
    """(s, s'): drawn from the topic's random id, so that partitions added later go on where the first ones ended."""
    return topic_id.int % broker_count, (topic_id.int >> 64) % max(1, broker_count - 1)


def place(
    brokers: Sequence[BrokerImage],
    partitions: range,
    replication_factor: int,
    *,
    start: int = 0,
    shift: int = 0,
) -> list[tuple[int, ...]]:
    """Replicas per partition, the preferred leader first. Needs at least `replication_factor` brokers."""
    assert 0 < replication_factor <= len(brokers)
    row = _row(brokers)
    return [_replicas(row, partition, replication_factor, start, shift) for partition in partitions]


def _replicas(row: Sequence[BrokerImage], partition: int, factor: int, start: int, shift: int) -> tuple[int, ...]:
    count = len(row)
    leader = (start + partition) % count
    turn = shift + partition // count
    places = [(leader + 1 + (turn + step) % (count - 1)) % count for step in range(count - 1)]
    chosen = [row[leader]]
    waiting = [row[place] for place in places]
    while len(chosen) < factor:
        chosen.append(_take_loneliest(waiting, chosen))
    return tuple(broker.id for broker in chosen)


def _take_loneliest(waiting: list[BrokerImage], chosen: Sequence[BrokerImage]) -> BrokerImage:
    """The first in turn whose rack, then host, has the fewest replicas; where those do not differ: simply the first."""
    racks = Counter(broker.rack for broker in chosen)
    hosts = Counter((broker.rack, broker.host) for broker in chosen)
    best = min(range(len(waiting)), key=lambda i: (racks[waiting[i].rack], hosts[waiting[i].rack, waiting[i].host], i))
    return waiting.pop(best)


def _row(brokers: Iterable[BrokerImage]) -> list[BrokerImage]:
    """Sorted by id, then dealt out by rack, and by host inside a rack. One rack and one host: simply sorted."""
    by_rack: dict[str, dict[str, list[BrokerImage]]] = {}
    for broker in sorted(brokers, key=lambda broker: broker.id):
        by_rack.setdefault(broker.rack or "", {}).setdefault(broker.host, []).append(broker)
    return _deal([_deal(list(hosts.values())) for hosts in by_rack.values()])


def _deal(hands: Sequence[Sequence[BrokerImage]]) -> list[BrokerImage]:
    """One of each in turn until all are empty."""
    return [broker for turn in zip_longest(*hands) for broker in turn if broker is not None]
