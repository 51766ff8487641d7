"""Of which partitions this broker tells: those that it leads, and those without a leader where it speaks for all.

Follows the metadata image. Between two images nothing here changes, so that a second with nothing new costs nothing,
however many partitions there are.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from uuid import UUID

from broker_engine.ids import NO_LEADER
from broker_engine.metadata.image import MetadataImage, PartitionImage
from broker_engine.names import Name
from broker_engine.server.local_partition import LocalPartition
from broker_engine.telemetry.schema import Key

PartitionId = tuple[UUID, int]


@dataclass(frozen=True, slots=True)
class Entry:
    key: Key
    turn: int
    """See Sampler.turn_of."""
    topic_id: UUID
    state: PartitionImage
    local: LocalPartition | None
    """None: nobody leads it, and this broker says so."""


@dataclass(slots=True)
class News:
    """What an image changed."""

    entries: dict[PartitionId, Entry] = field(default_factory=dict)
    handed_over: list[Key] = field(default_factory=list)
    """Others tell of these from now on, or nobody needs to."""
    gone: list[Key] = field(default_factory=list)
    """Their topics are deleted."""


class Roster:
    def __init__(self, node_id: int, make_key: Callable[[Name, int], Key], turn_of: Callable[[Key], int]) -> None:
        self._node_id = node_id
        self._make_key = make_key
        self._turn_of = turn_of
        self._entries: dict[PartitionId, Entry] = {}
        self._by_turn: dict[int, list[PartitionId]] = {}
        self._unsettled: dict[PartitionId, Entry] = {}
        self.leaderless_here_count = 0
        self.unclean_election_count = 0
        """Of the whole cluster."""

    def led(self) -> Iterator[Entry]:
        return (entry for entry in self._entries.values() if entry.local is not None)

    def find(self, key: PartitionId) -> Entry | None:
        return self._entries.get(key)

    def of_turn(self, turn: int) -> Iterator[tuple[PartitionId, Entry]]:
        return ((key, self._entries[key]) for key in self._by_turn.get(turn, ()))

    def unsettled(self) -> Iterator[tuple[PartitionId, Entry]]:
        """Led here, with a replica that is catching up: its progress is news, though nobody writes."""
        return iter(self._unsettled.items())

    def follow(self, image: MetadataImage, locals_: Iterable[LocalPartition], *, is_speaker: bool) -> News:
        known, self._entries = self._entries, {}
        self._add_led(image, locals_, known)
        self._add_leaderless(image, known, is_speaker=is_speaker)
        self._by_turn = _by_turn(self._entries)
        self._unsettled = {key: entry for key, entry in self._entries.items() if _is_unsettled(entry)}
        return _news(known, self._entries, image)

    def _add_led(
        self, image: MetadataImage, locals_: Iterable[LocalPartition], known: dict[PartitionId, Entry]
    ) -> None:
        for local in locals_:
            topic = image.topics.get(local.topic_id)
            state = None if topic is None else topic.partitions.get(local.index)
            if state is not None and state.leader == self._node_id:
                self._add((local.topic_id, local.index), local.name, state, local, known)

    def _add_leaderless(self, image: MetadataImage, known: dict[PartitionId, Entry], *, is_speaker: bool) -> None:
        self.leaderless_here_count = self.unclean_election_count = 0
        for topic in image.topics.values():
            for index, state in topic.partitions.items():
                self.unclean_election_count += state.unclean_elections
                if state.leader == NO_LEADER:
                    self.leaderless_here_count += self._node_id in state.replicas
                    if is_speaker:
                        self._add((topic.id, index), topic.name, state, None, known)

    def _add(
        self,
        partition: PartitionId,
        name: Name,
        state: PartitionImage,
        local: LocalPartition | None,
        known: dict[PartitionId, Entry],
    ) -> None:
        before = known.get(partition)
        if before is not None and before.state is state and before.local is local:
            self._entries[partition] = before
            return
        key = self._make_key(name, partition[1]) if before is None else before.key
        turn = self._turn_of(key) if before is None else before.turn
        self._entries[partition] = Entry(key, turn, partition[0], state, local)


def speaker_of(image: MetadataImage, controller: int) -> int:
    """The broker that tells of the cluster as a whole: the controller, or where that is no live broker the first one
    that is. -1: there is none."""
    live = [broker.id for broker in image.brokers.values() if not broker.is_fenced]
    if controller in live:
        return controller
    return min(live, default=-1)


def _is_unsettled(entry: Entry) -> bool:
    return entry.local is not None and len(entry.state.isr) < len(entry.state.replicas)


def _by_turn(entries: dict[PartitionId, Entry]) -> dict[int, list[PartitionId]]:
    turns: defaultdict[int, list[PartitionId]] = defaultdict(list)
    for partition, entry in entries.items():
        turns[entry.turn].append(partition)
    return turns


def _news(before: dict[PartitionId, Entry], after: dict[PartitionId, Entry], image: MetadataImage) -> News:
    news = News({partition: entry for partition, entry in after.items() if before.get(partition) is not entry})
    for partition, entry in before.items():
        if partition in after:
            continue
        is_gone = entry.topic_id not in image.topics
        (news.gone if is_gone else news.handed_over).append(entry.key)
    return news
