"""Who is in a classic group: its members, which of them leads, who has an id and has not joined yet, which names static
members go by. Plain bookkeeping; when members come and go is decided in classic.py.
"""

from __future__ import annotations

from collections.abc import Iterable

from broker_engine.errors import ErrorCode
from broker_engine.groups.consumer_protocol import PROTOCOL_TYPE, read_assignment, read_subscription
from broker_engine.groups.member import JoinAsk, Member
from broker_engine.groups.timeline import Owners

_ASSIGNMENT_BYTES_MAX = 1 << 18
"""More than this is not read to see what moved: it would hold up everybody else."""

Roll = tuple[tuple[str, str | None, bytes], ...]


class Roster:
    def __init__(self) -> None:
        self.members: dict[str, Member] = {}
        self.leader: str | None = None
        self.protocol_type = ""
        self.pending: dict[str, int] = {}
        """Ids that were given out and have not joined yet, and until when they may."""
        self._static: dict[str, str] = {}
        self._speaker_counts: dict[str, int] = {}
        """How many members speak each protocol: asked at every join, so it is not counted anew."""

    def replace_all(self, members: Iterable[Member], leader: str | None, protocol_type: str) -> None:
        self.members = {member.id: member for member in members}
        self.leader, self.protocol_type = leader, protocol_type
        self._static = {member.instance_id: member.id for member in self.members.values() if member.instance_id}
        self._speaker_counts = {}
        for member in self.members.values():
            self._count(member, 1)

    # --- questions

    def id_of(self, instance_id: str | None) -> str | None:
        return None if instance_id is None else self._static.get(instance_id)

    def check(self, member_id: str, instance_id: str | None) -> ErrorCode:
        owner = self.id_of(instance_id)
        if owner is not None and owner != member_id:
            return ErrorCode.FENCED_INSTANCE_ID
        return ErrorCode.NONE if member_id in self.members else ErrorCode.UNKNOWN_MEMBER_ID

    def knows(self, ask: JoinAsk) -> bool:
        return ask.member_id in self.members or self.id_of(ask.instance_id) is not None

    def fits(self, ask: JoinAsk) -> bool:
        """It shares a protocol with everybody else."""
        if not ask.protocol_type or not ask.protocols:
            return False
        known = self.members.get(ask.member_id)
        own_names = frozenset() if known is None else frozenset(known.protocol_names)
        other_count = len(self.members) - (known is not None)
        if not other_count:
            return True
        return ask.protocol_type == self.protocol_type and any(
            self._speaker_counts.get(name, 0) - (name in own_names) == other_count for name, _ in ask.protocols
        )

    @property
    def rebalance_timeout_ms(self) -> int:
        return max((member.rebalance_timeout_ms for member in self.members.values()), default=0)

    @property
    def is_awaited(self) -> bool:
        """Somebody who is known has not joined."""
        return bool(self.pending) or any(member.joining is None for member in self.members.values())

    def elect_protocol(self) -> str:
        """Each member votes for the one it likes best among those that all speak."""
        first = next(iter(self.members.values()))
        everybody = len(self.members)
        votes = {name: 0 for name in first.protocol_names if self._speaker_counts[name] == everybody}
        assert votes, "who shares no protocol with the others was not let in"
        for member in self.members.values():
            votes[next(name for name, _ in member.protocols if name in votes)] += 1
        return max(votes, key=lambda name: votes[name])

    def roll(self, protocol: str | None) -> Roll:
        return tuple((each.id, each.instance_id, each.metadata_of(protocol or "")) for each in self.members.values())

    # --- changes

    def add(self, member: Member, protocol_type: str) -> None:
        if not self.members:
            self.protocol_type = protocol_type
        self.members[member.id] = member
        self._count(member, 1)
        if member.instance_id is not None:
            self._static[member.instance_id] = member.id
        self.leader = self.leader or member.id

    def drop(self, member: Member) -> None:
        del self.members[member.id]
        self._count(member, -1)
        if member.instance_id is not None:
            self._static.pop(member.instance_id, None)
        if self.leader == member.id:
            self.leader = next(iter(self.members), None)

    def take_over(self, member: Member, ask: JoinAsk) -> None:
        """What a member says when it joins again."""
        self._count(member, -1)
        member.take_over(ask)
        self._count(member, 1)

    def _count(self, member: Member, by: int) -> None:
        counts = self._speaker_counts
        for name in dict.fromkeys(member.protocol_names):  # a client may name one twice
            counts[name] = counts.get(name, 0) + by
            if not counts[name]:
                del counts[name]

    def rename(self, member: Member, new_id: str) -> None:
        """The same static member under a new id; it goes on leading if it led."""
        assert member.instance_id is not None
        old_id = member.id
        del self.members[old_id]
        member.id = new_id
        self.members[new_id] = member
        self._static[member.instance_id] = new_id
        if self.leader == old_id:
            self.leader = new_id

    def elect_leader(self) -> bool:
        """The leader stays who it was if it has joined. False where nobody has."""
        here = [member.id for member in self.members.values() if member.joining is not None]
        if here and self.leader not in here:
            self.leader = here[0]
        return bool(here)

    # --- inside the clients' own bytes

    def owners(self) -> Owners | None:
        """Which member holds each partition; None where the clients' bytes do not tell."""
        total_bytes = sum(len(member.assignment) for member in self.members.values())
        if (self.protocol_type != PROTOCOL_TYPE and self.members) or total_bytes > _ASSIGNMENT_BYTES_MAX:
            return None
        owners: dict[tuple[str, int], str] = {}
        for member in self.members.values():
            assigned = read_assignment(member.assignment)
            if assigned is None:
                return None
            places = ((topic, index) for topic, indexes in assigned.items() for index in indexes)
            owners |= dict.fromkeys(places, member.instance_id or member.id)
        return owners

    def subscribed_topics(self, protocol: str | None) -> frozenset[str] | None:
        """As the clients name them; None where somebody's bytes do not tell."""
        if self.protocol_type != PROTOCOL_TYPE or protocol is None:
            return None
        topics: set[str] = set()
        # Most members of a group say the same.
        for said in {member.metadata_of(protocol) for member in self.members.values()}:
            found = read_subscription(said)
            if found is None:
                return None
            topics.update(found.topics)
        return frozenset(topics)
