"""The roles of a node in the quorum, and which may follow which. Observers are only ever Unattached or Follower."""

from __future__ import annotations

from enum import Enum


class Role(Enum):
    UNATTACHED = "knows an epoch, but no leader"
    PROSPECTIVE = "asks whether it would be elected, without raising the epoch"
    CANDIDATE = "raised the epoch, voted for itself, asks for votes"
    LEADER = "writes; commits once a majority has it on disk"
    FOLLOWER = "fetches from the leader of its epoch"
    RESIGNED = "led in this epoch and will not again"


NEXT_ROLES: dict[Role, frozenset[Role]] = {
    # The only voter skips Prospective: there is nobody to ask.
    Role.UNATTACHED: frozenset({Role.UNATTACHED, Role.PROSPECTIVE, Role.CANDIDATE, Role.FOLLOWER}),
    Role.PROSPECTIVE: frozenset({Role.UNATTACHED, Role.CANDIDATE, Role.FOLLOWER}),
    Role.CANDIDATE: frozenset({Role.UNATTACHED, Role.PROSPECTIVE, Role.LEADER, Role.FOLLOWER}),
    # A leader follows only the leader of a later epoch.
    Role.LEADER: frozenset({Role.UNATTACHED, Role.RESIGNED, Role.FOLLOWER}),
    Role.FOLLOWER: frozenset({Role.UNATTACHED, Role.PROSPECTIVE, Role.FOLLOWER}),
    Role.RESIGNED: frozenset({Role.UNATTACHED, Role.FOLLOWER}),
}
