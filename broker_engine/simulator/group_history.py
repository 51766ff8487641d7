"""What members of groups were told: who had what in which generation, and what was committed and read back.

Rules 31 (one owner in a generation; whoever is not in the present one cannot commit) and 32 (committed offsets are
registers: an acknowledged commit is there, whatever happens to the coordinator) of reliability.md section 2. An answer
of a coordinator that is not loaded, or that was not replicated, breaks the second one (33).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from broker_engine.client import GroupIdentity, TopicPartition
from broker_engine.simulator.history import Call, Read, Write, find_nonlinearizable

Violate = Callable[[str, str], None]
NOTHING = -1
"""What a register holds before the first commit."""


@dataclass(slots=True)
class OpenCall:
    """A commit or a read that was asked for; it stays open where nobody was told."""

    process: str
    group: str
    invoked_s: float
    offsets: Mapping[TopicPartition, int]
    fenced_by: str = ""
    """What the group had gone on to without the caller when it was asked for."""
    is_commit: bool = True
    returned_s: float | None = None
    targets: tuple[TopicPartition, ...] = ()


@dataclass(slots=True)
class GroupHistory:
    violate: Violate
    now_s: Callable[[], float]
    _owners: dict[tuple[str, int, TopicPartition], str] = field(default_factory=dict)
    _newest: dict[str, int] = field(default_factory=dict)
    _holders: dict[tuple[str, TopicPartition], tuple[int, str]] = field(default_factory=dict)
    """With the epoch in which each got it."""
    _calls: list[OpenCall] = field(default_factory=list)

    def assigned(self, identity: GroupIdentity, partitions: Iterable[TopicPartition]) -> None:
        group, generation = identity.group_id, identity.generation
        for target in partitions:
            owner = self._owners.setdefault((group, generation, target), identity.member_id)
            if owner != identity.member_id:
                text = f"{target} in generation {generation} of {group!r}: {owner} and {identity.member_id}"
                self.violate("31 one owner in a generation", text)
        self._newest[group] = max(generation, self._newest.get(group, -1))

    def taken(self, identity: GroupIdentity, partitions: Iterable[TopicPartition]) -> None:
        """In a group of KIP-848, where each member has an epoch of its own: who has these from now on."""
        for target in partitions:
            place = identity.group_id, target
            epoch, _ = self._holders.get(place, (-1, ""))
            if identity.generation >= epoch:  # else the answer came late, to one that had lost its place meanwhile
                self._holders[place] = identity.generation, identity.member_id

    def commit(self, process: str, identity: GroupIdentity, offsets: Mapping[TopicPartition, int]) -> OpenCall:
        fenced_by = self._fenced_by(identity, offsets)
        call = OpenCall(process, identity.group_id, self.now_s(), dict(offsets), fenced_by)
        self._calls.append(call)
        return call

    def _fenced_by(self, identity: GroupIdentity, targets: Iterable[TopicPartition]) -> str:
        group = identity.group_id
        newest = self._newest.get(group, -1)
        if 0 <= identity.generation < newest:
            return f"in generation {identity.generation} of {group!r}, not {newest}"
        for target in targets:
            _, holder = self._holders.get((group, target), (-1, identity.member_id))
            if holder != identity.member_id:
                return f"in epoch {identity.generation} of {group!r} for {target}, which {holder} has"
        return ""

    def read(self, process: str, group: str, targets: Iterable[TopicPartition]) -> OpenCall:
        call = OpenCall(process, group, self.now_s(), {}, is_commit=False, targets=tuple(targets))
        self._calls.append(call)
        return call

    def committed(self, call: OpenCall, *, is_fenced_by_group: bool = True) -> None:
        """`is_fenced_by_group`: not so at the end of a transaction, whose offsets were taken before."""
        call.returned_s = self.now_s()
        if is_fenced_by_group and call.fenced_by:
            self.violate("31 a fenced member cannot commit", f"{call.process} committed {call.fenced_by}")

    def found(self, call: OpenCall, offsets: Mapping[TopicPartition, int]) -> None:
        call.returned_s = self.now_s()
        call.offsets = {target: offsets.get(target, NOTHING) for target in call.targets}

    def check(self) -> None:
        """At the end: each (group, partition) as a register."""
        for anomaly in find_nonlinearizable(dict(self._registers()), initial=NOTHING):
            self.violate("32 committed offsets are linearizable", str(anomaly))

    def _registers(self) -> Iterator[tuple[Hashable, list[Call]]]:
        registers: defaultdict[Hashable, list[Call]] = defaultdict(list)
        for call in self._calls:
            if call.is_commit or call.returned_s is not None:
                for target, offset in call.offsets.items():
                    action = Write(offset) if call.is_commit else Read(offset)
                    register = f"{call.group} {target}"
                    registers[register].append(Call(call.process, action, call.invoked_s, call.returned_s))
        yield from registers.items()

    @property
    def acked_count(self) -> int:
        return sum(call.is_commit and call.returned_s is not None for call in self._calls)
