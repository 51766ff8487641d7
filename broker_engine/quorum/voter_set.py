"""Who votes: a set of (node, directory) with addresses, as VotersRecord says it, and the sets that the log has seen.

A set counts from the moment that its record is appended, committed or not; a truncated record brings the one before it
back.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from broker_engine.metadata.records import EndpointField, VoterField, VotersRecord, decode_record, encode_record
from broker_engine.quorum.election_state import VoterKey

_TYPE_BYTE = VotersRecord.TYPE
INITIAL = -1
"""The offset of a set that no record says yet."""


@dataclass(frozen=True, slots=True)
class VoterEndpoint:
    name: str
    host: str
    port: int


@dataclass(frozen=True, slots=True)
class Voter:
    key: VoterKey
    endpoints: tuple[VoterEndpoint, ...] = ()


@dataclass(frozen=True, slots=True)
class VoterSet:
    voters: tuple[Voter, ...] = ()
    """Sorted by key."""

    @classmethod
    def of(cls, voters: Iterable[Voter]) -> VoterSet:
        return cls(tuple(sorted(voters, key=lambda voter: voter.key)))

    @property
    def keys(self) -> tuple[VoterKey, ...]:
        return tuple(voter.key for voter in self.voters)

    @property
    def majority_count(self) -> int:
        return len(self.voters) // 2 + 1

    def __contains__(self, key: VoterKey) -> bool:
        return any(voter.key == key for voter in self.voters)

    def __len__(self) -> int:
        return len(self.voters)

    def has_node(self, node_id: int) -> bool:
        return any(voter.key.node_id == node_id for voter in self.voters)

    def added(self, voter: Voter) -> VoterSet:
        return VoterSet.of((*self.voters, voter))

    def removed(self, key: VoterKey) -> VoterSet:
        return VoterSet(tuple(voter for voter in self.voters if voter.key != key))

    def others(self, me: VoterKey) -> tuple[VoterKey, ...]:
        return tuple(key for key in self.keys if key != me)


class VoterHistory:
    """Every set of the log by the offset of its record. The last one counts."""

    def __init__(self, sets: Iterable[tuple[int, VoterSet]] = ()) -> None:
        self._sets = [(INITIAL, VoterSet()), *sets]

    @property
    def latest(self) -> VoterSet:
        return self._sets[-1][1]

    @property
    def latest_offset(self) -> int:
        """Of the last set's record; INITIAL where there is none."""
        return self._sets[-1][0]

    def may_stand(self, key: VoterKey, high_watermark: int) -> bool:
        """A voter, or one that is no more, as long as that is not known to be committed: the others may need its log.

        Without this a leader that crashes while it removes itself could leave behind a majority that waits for it.
        """
        is_settled = self.latest_offset < high_watermark
        return key in self.latest or (not is_settled and any(key in voters for _, voters in self._sets))

    def append(self, offset: int, voters: VoterSet) -> None:
        assert offset > self.latest_offset
        self._sets.append((offset, voters))

    def truncate_to(self, offset: int) -> None:
        first, *later = self._sets
        self._sets = [first, *(entry for entry in later if entry[0] < offset)]

    def restart_with(self, offset: int, voters: VoterSet) -> None:
        """A snapshot took the place of the log."""
        self._sets = [(INITIAL, VoterSet()), (offset, voters)]


def encode_voters(voters: VoterSet) -> bytes:
    return encode_record(VotersRecord(voters=[_field(voter) for voter in voters.voters]))


def decode_voters(value: bytes) -> VoterSet | None:
    """None for any other record."""
    if not value or value[0] != _TYPE_BYTE:
        return None
    record = decode_record(value)
    assert isinstance(record, VotersRecord)
    return voter_set(record)


def voter_set(record: VotersRecord) -> VoterSet:
    return VoterSet.of(_voter(field) for field in record.voters)


def _field(voter: Voter) -> VoterField:
    endpoints = [EndpointField(name=e.name, host=e.host, port=e.port) for e in voter.endpoints]
    return VoterField(voter_id=voter.key.node_id, directory_id=voter.key.directory_id, endpoints=endpoints)


def _voter(field: VoterField) -> Voter:
    endpoints = tuple(VoterEndpoint(e.name, e.host, e.port) for e in field.endpoints)
    return Voter(VoterKey(field.voter_id, field.directory_id), endpoints)
