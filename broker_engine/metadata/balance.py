"""A proposal of moves: for a new empty broker, for another replication factor, for emptying a broker before it goes.

Moves as little as it can: a replica that may stay stays; only what a broker has too much, or may not have, or what a
partition lacks, is copied. Racks are kept apart first, then hosts. Preferred leaders are evened out by the order of
replicas, which copies nothing. Pure, and a proposal only: whoever asked shows it, then reassigns.
`__telemetry` stays where it is: its partitions belong to their brokers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from uuid import UUID

from broker_engine.errors import BrokerError, ErrorCode
from broker_engine.metadata.image import MetadataImage
from broker_engine.metadata.parts import BrokerImage, TopicImage
from broker_engine.metadata.telemetry_topic import TELEMETRY_TOPIC
from broker_engine.names import Name

PartitionKey = tuple[UUID, int]


@dataclass(frozen=True, slots=True)
class Move:
    name: Name
    partition: int
    before: tuple[int, ...]
    after: tuple[int, ...]
    bytes_copied: int | None
    """By all new replicas together; None where the partition's size is not known."""

    @property
    def adding(self) -> tuple[int, ...]:
        return tuple(broker for broker in self.after if broker not in self.before)


def propose_balance(
    image: MetadataImage,
    brokers: Iterable[int],
    factor: int | None = None,
    *,
    topics: Iterable[Name] | None = None,
    bytes_of: Mapping[PartitionKey, int] | None = None,
) -> list[Move]:
    """`brokers` may hold replicas afterwards, nobody else; `factor` None = each partition keeps its own.

    INVALID_REPLICATION_FACTOR where there are too few of them, BROKER_ID_NOT_REGISTERED for an unknown one.
    """
    allowed = [_broker(image, broker_id) for broker_id in sorted(set(brokers))]
    chosen = _topics(image, topics)
    plan = _Plan(allowed)
    for topic in chosen:
        for index in sorted(topic.partitions):
            partition = topic.partitions[index]
            settled = [broker for broker in partition.replicas if broker not in partition.adding]
            plan.take(topic, index, tuple(settled), factor or len(settled))
    plan.fill()
    plan.even_out()
    plan.even_out_leaders()
    return plan.moves(bytes_of or {})


def _broker(image: MetadataImage, broker_id: int) -> BrokerImage:
    broker = image.brokers.get(broker_id)
    if broker is None:
        raise BrokerError(ErrorCode.BROKER_ID_NOT_REGISTERED, f"Broker {broker_id} is not registered.")
    return broker


def _topics(image: MetadataImage, names: Iterable[Name] | None) -> list[TopicImage]:
    if names is None:
        found = list(image.topics.values())
    else:
        found = [topic for name in dict.fromkeys(names) if (topic := image.topic(name)) is not None]
    return sorted((topic for topic in found if topic.name != TELEMETRY_TOPIC), key=lambda topic: topic.name)


@dataclass(slots=True)
class _Row:
    topic: TopicImage
    index: int
    before: tuple[int, ...]
    factor: int
    after: list[int]


class _Plan:
    def __init__(self, allowed: Sequence[BrokerImage]) -> None:
        self._allowed = {broker.id: broker for broker in allowed}
        self._rows: list[_Row] = []
        self._load: Counter[int] = Counter({broker.id: 0 for broker in allowed})
        self._looked_at: dict[tuple[int, int], int] = {}

    def take(self, topic: TopicImage, index: int, before: tuple[int, ...], factor: int) -> None:
        if factor > len(self._allowed):
            text = f"{factor} replicas need as many brokers, but there are {len(self._allowed)}."
            raise BrokerError(ErrorCode.INVALID_REPLICATION_FACTOR, text)
        after = [broker for broker in before if broker in self._allowed][:factor]
        self._rows.append(_Row(topic, index, before, factor, after))
        self._load.update(after)

    def fill(self) -> None:
        """Every partition gets its number of replicas, on whoever has the fewest."""
        for row in self._rows:
            while len(row.after) < row.factor:
                waiting = [broker for broker in self._allowed if broker not in row.after]
                best = min(waiting, key=lambda broker: (self._crowd(row.after, broker), self._load[broker], broker))
                row.after.append(best)
                self._load[best] += 1

    def even_out(self) -> None:
        """From who has the most to who has the fewest, one replica at a time, until they differ by one at most."""
        held = {broker: self._held(broker) for broker in self._allowed}
        stuck: set[int] = set()
        while True:
            donors = [broker for broker in self._allowed if broker not in stuck]
            donor = max(donors, key=lambda broker: (self._load[broker], -broker), default=None)
            receiver = min(self._allowed, key=lambda broker: (self._load[broker], broker))
            if donor is None or self._load[donor] - self._load[receiver] <= 1:
                return
            row = self._hand_over(held[donor], donor, receiver)
            if row is None:
                stuck.add(donor)
            else:
                held[receiver].append(row)

    def _held(self, broker: int) -> list[_Row]:
        """What is copied in any case first, what this broker would lead last."""
        rows = [row for row in self._rows if broker in row.after]
        return sorted(rows, key=lambda row: (broker in row.before, row.after[0] == broker))

    def _hand_over(self, held: list[_Row], donor: int, receiver: int) -> _Row | None:
        """The first that the receiver can take without crowding a rack or host, from where the last search ended."""
        start = self._looked_at.get((donor, receiver), 0)
        for position in chain(range(start, len(held)), range(start)):
            row = held[position]
            if donor in row.after and self._may_take(row, donor, receiver):
                row.after[row.after.index(donor)] = receiver
                self._load[donor] -= 1
                self._load[receiver] += 1
                self._looked_at[donor, receiver] = position + 1
                return row
        return None

    def _may_take(self, row: _Row, donor: int, receiver: int) -> bool:
        if receiver in row.after:
            return False
        others = [broker for broker in row.after if broker != donor]
        return self._crowd(others, receiver) <= self._crowd(others, donor)

    def _crowd(self, chosen: Sequence[int], broker_id: int) -> tuple[int, int]:
        """How many of `chosen` share the rack, and the host, of this broker."""
        broker = self._allowed[broker_id]
        others = [self._allowed[other] for other in chosen]
        racks = sum(other.rack == broker.rack for other in others)
        hosts = sum((other.rack, other.host) == (broker.rack, broker.host) for other in others)
        return racks, hosts

    def even_out_leaders(self) -> None:
        led = Counter(dict.fromkeys(self._allowed, 0))
        led.update(row.after[0] for row in self._rows)
        for row in self._rows:
            first = row.after[0]
            best = min(row.after, key=lambda broker: (led[broker], row.after.index(broker)))
            if led[first] - led[best] > 1:
                row.after.remove(best)
                row.after.insert(0, best)
                led[first] -= 1
                led[best] += 1

    def moves(self, bytes_of: Mapping[PartitionKey, int]) -> list[Move]:
        return [_move(row, bytes_of) for row in self._rows if tuple(row.after) != row.before]


def _move(row: _Row, bytes_of: Mapping[PartitionKey, int]) -> Move:
    size_bytes = bytes_of.get((row.topic.id, row.index))
    copies = sum(broker not in row.before for broker in row.after)
    copied = 0 if copies == 0 else None if size_bytes is None else size_bytes * copies
    return Move(row.topic.name, row.index, row.before, tuple(row.after), copied)
