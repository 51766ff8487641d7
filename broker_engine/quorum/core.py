"""QuorumCore: decides who leads and what is committed. Pure: `step(event, now_ms) -> Ready`.

What must hold, asserted where state changes:
- An epoch is on disk before the node acts in it, and every start takes a higher one than any that this disk has seen:
  no (epoch, offset) ever names two different records, whatever a crash took from the log's tail.
- A leader's first entry is LeaderChange, and nothing counts as committed before that entry is.
- Committed means durable on a majority of voters; a leader counts itself only after its own fsync.
- A node whose directory id is not in the voter set has no vote.
"""

from __future__ import annotations

from collections.abc import Iterable

from broker_engine.errors import BrokerError, ErrorCode
from broker_engine.quorum.control import leader_change
from broker_engine.quorum.election_state import ElectionState, VoterKey
from broker_engine.quorum.ready import NOTHING, Entry, Event, Flushed, Propose, Ready, Resign, Start, StatePersisted
from broker_engine.quorum.roles import NEXT_ROLES, Role


class QuorumCore:
    def __init__(
        self,
        *,
        me: VoterKey,
        voters: Iterable[VoterKey],
        state: ElectionState | None,
        log_end_offset: int,
        log_last_epoch: int,
    ) -> None:
        """`state` is None on a new disk; `log_last_epoch` is that of the log's last batch, 0 for an empty log.

        Everything in the log at the start must be on disk: recovery has cut what was not, and synced the rest.
        """
        self.me = me
        self.voters = tuple(sorted(voters))
        self.role = Role.UNATTACHED
        # A log may know a later epoch than a lost or older state file: believe the higher one.
        self.epoch = max(log_last_epoch, state.epoch if state is not None else 0)
        self.log_end_offset = log_end_offset
        self.high_watermark: int | None = None
        """None until an entry of this node's own epoch is committed: before that nobody knows."""
        self._durable_end_offsets = dict.fromkeys(self.voters, 0)
        if self.is_voter:
            self._durable_end_offsets[me] = log_end_offset
        self._unpersisted: ElectionState | None = None
        self._epoch_start_offset = log_end_offset
        self._uncommitted: list[Entry] = []

    @property
    def is_voter(self) -> bool:
        return self.me in self.voters

    @property
    def is_leader(self) -> bool:
        return self.role is Role.LEADER

    @property
    def leader_id(self) -> int | None:
        return self.me.node_id if self.is_leader else None

    def step(self, event: Event, now_ms: int) -> Ready:
        """`now_ms` is for elections with several voters; one voter never waits."""
        match event:
            case Start():
                return self._start()
            case StatePersisted(state):
                return self._on_state_persisted(state)
            case Propose(values):
                return self._propose(values)
            case Flushed(end_offset):
                return self._on_flushed(end_offset)
            case Resign():
                return self._resign()

    # --- election

    def _start(self) -> Ready:
        if not self.is_voter or self.role is not Role.UNATTACHED:
            return NOTHING
        self._move_to(Role.CANDIDATE)
        self.epoch += 1
        return self._persist(ElectionState(self.epoch, voted_for=self.me))

    def _persist(self, state: ElectionState) -> Ready:
        self._unpersisted = state
        return Ready(persist_state=state)

    def _on_state_persisted(self, state: ElectionState) -> Ready:
        if state != self._unpersisted:
            return NOTHING  # a newer state was asked for meanwhile, and that one counts
        self._unpersisted = None
        # Only now does the own vote exist. With other voters theirs are asked for here.
        if self.role is Role.CANDIDATE and self._majority_count == 1:
            return self._lead()
        return NOTHING

    @property
    def _majority_count(self) -> int:
        return len(self.voters) // 2 + 1

    def _lead(self) -> Ready:
        self._move_to(Role.LEADER)
        self._epoch_start_offset = self.log_end_offset
        key, value = leader_change(self.me.node_id, self.voters, granting=[self.me])
        return Ready(append=(self._new_entry((value,), control_key=key),))

    def _resign(self) -> Ready:
        """Proposals that are not committed stay undecided: the next leader's log says what became of them."""
        if self.is_leader:
            self._move_to(Role.RESIGNED)
            self._uncommitted.clear()
        return NOTHING

    # --- the log

    def _propose(self, values: tuple[bytes, ...]) -> Ready:
        if not self.is_leader:
            raise BrokerError(ErrorCode.NOT_CONTROLLER, "This node does not lead the metadata quorum.")
        assert values, "an empty batch has no offset to wait for"
        return Ready(append=(self._new_entry(values),))

    def _new_entry(self, values: tuple[bytes, ...], control_key: bytes | None = None) -> Entry:
        entry = Entry(self.epoch, self.log_end_offset, values, control_key)
        self.log_end_offset = entry.end_offset
        self._uncommitted.append(entry)
        return entry

    def _on_flushed(self, end_offset: int) -> Ready:
        assert end_offset <= self.log_end_offset, "only what was written can be on disk"
        if not self.is_voter or end_offset <= self._durable_end_offsets[self.me]:
            return NOTHING
        self._durable_end_offsets[self.me] = end_offset
        return self._advance() if self.is_leader else NOTHING

    def _advance(self) -> Ready:
        by_height = sorted(self._durable_end_offsets.values(), reverse=True)
        agreed = by_height[self._majority_count - 1]
        # An older epoch's entries are committed by the LeaderChange above them, never by counting copies (Raft 5.4.2).
        if agreed <= self._epoch_start_offset or agreed == self.high_watermark:
            return NOTHING
        assert self.high_watermark is None or agreed > self.high_watermark, "a high watermark never moves back"
        self.high_watermark = agreed
        return Ready(committed=self._take_committed(agreed), high_watermark=agreed)

    def _take_committed(self, high_watermark: int) -> tuple[Entry, ...]:
        committed = tuple(entry for entry in self._uncommitted if entry.end_offset <= high_watermark)
        self._uncommitted = self._uncommitted[len(committed) :]
        return committed

    def _move_to(self, role: Role) -> None:
        assert role in NEXT_ROLES[self.role], f"{self.role.name} -> {role.name}"
        self.role = role
