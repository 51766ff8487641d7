"""QuorumCore: decides who leads, who votes and what is committed. Pure: `step(event, now_ms) -> Ready`.

What must hold, asserted where state changes:
- At most one leader an epoch; one vote an epoch, on disk before anybody is told.
- A leader's first entry is LeaderChange, and nothing counts as committed before that entry is.
- Committed means durable on a majority of voters; a leader counts itself only after its own fsync.
- A node whose directory id is not in the voter set has no vote.
- One change of voters at a time, by one voter, and only after the leader committed something of its own epoch.
"""

from __future__ import annotations

from dataclasses import replace

from broker_engine.errors import BrokerError, ErrorCode
from broker_engine.quorum import ready as r
from broker_engine.quorum.election_state import VoterKey
from broker_engine.quorum.leading import Leading
from broker_engine.quorum.log_index import LogPosition
from broker_engine.quorum.messages import (
    Answer,
    BeginEpochRequest,
    EndEpochRequest,
    EpochAnswer,
    FetchAnswer,
    FetchRequest,
    Request,
    VoteAnswer,
    VoteRequest,
)
from broker_engine.quorum.roles import Role
from broker_engine.quorum.voter_set import Voter, VoterSet, encode_voters


class QuorumCore(Leading):
    @property
    def next_deadline_ms(self) -> int | None:
        """When to step a Tick; None where nothing is waited for."""
        timers = (self._check_at_ms, self._begin_at_ms) if self.is_leader else (self._election_at_ms, self._fetch_timer)
        return min((timer for timer in timers if timer is not None), default=None)

    @property
    def _fetch_timer(self) -> int | None:
        return self._fetch_at_ms if self._may_fetch and self._anybody() is not None else None

    def step(self, event: r.Event, now_ms: int) -> r.Ready:
        """Carry out all of the Ready before the next step."""
        self._now_ms = now_ms
        self._take(event)
        self._fetch_if_due()
        return self._finish()

    def _take(self, event: r.Event) -> None:
        match event:
            case r.Start():
                self._start()
            case r.Tick():
                self._tick()
            case r.Asked(request):
                self._on_request(request)
            case r.Answered(node_id, answer):
                self._on_answer(node_id, answer)
            case r.SendFailed(node_id, request, is_refused):
                self._on_send_failed(node_id, request, is_refused=is_refused)
            case r.PeerLost(node_id, is_refused):
                self._on_peer_lost(node_id, is_refused=is_refused)
            case r.Propose(values):
                self._propose(values)
            case r.Flushed(end_offset):
                self._on_flushed(end_offset)
            case r.AddVoter(voter):
                self._add_voter(voter)
            case r.RemoveVoter(key):
                self._remove_voter(key)
            case r.Resign():
                self._resign()
            case _:
                self._take_of_snapshot(event)

    def _take_of_snapshot(self, event: r.SnapshotEvent) -> None:
        match event:
            case r.SnapshotProgressed(snapshot):
                self._on_snapshot_progressed(snapshot)
            case r.SnapshotServed(replica):
                self._on_snapshot_served(replica)
            case r.SnapshotLoaded():
                self._on_snapshot_loaded(event)
            case r.SnapshotFailed():
                self._on_snapshot_failed(event)
            case r.LogShortened(start):
                self._on_log_shortened(start)

    def _start(self) -> None:
        if self.role is not Role.UNATTACHED or self._election_at_ms is not None:
            return
        leader_id = self.known_leader_id
        if self.is_only_voter:
            self._stand()
        elif leader_id is not None and leader_id != self.me.node_id:
            self._become_follower(epoch=self.epoch, leader_id=leader_id)
        else:
            self._become_unattached(epoch=self.epoch)
            self._fetch_at_ms = None  # ask for the leader at once

    def _tick(self) -> None:
        if self.is_leader:
            self._tick_leader()
        elif self._is_due(self._election_at_ms):
            self._on_election_due()

    def _on_request(self, request: Request) -> None:
        match request:
            case VoteRequest():
                self._on_vote_request(request)
            case BeginEpochRequest():
                self._on_begin_epoch_request(request)
            case EndEpochRequest():
                self._on_end_epoch_request(request)
            case FetchRequest():
                self._on_fetch_request(request)

    def _on_answer(self, node_id: int, answer: Answer) -> None:
        match answer:
            case VoteAnswer():
                self._on_vote_answer(node_id, answer)
            case FetchAnswer():
                self._on_fetch_answer(node_id, answer)
            case EpochAnswer(epoch=epoch, leader_id=leader_id):
                self._hear(epoch, leader_id, from_id=node_id)

    def _on_send_failed(self, node_id: int, request: Request, *, is_refused: bool) -> None:
        if isinstance(request, VoteRequest):
            self._on_no_vote(request.request_id)
        elif isinstance(request, FetchRequest) and self._fetch == request:
            self._retry_fetch_later()
            self._on_peer_lost(node_id, is_refused=is_refused)

    def _on_peer_lost(self, node_id: int, *, is_refused: bool) -> None:
        if is_refused and self.role is Role.FOLLOWER and node_id == self.known_leader_id:
            self._on_leader_gone()

    def _on_log_shortened(self, start: LogPosition) -> None:
        """Unless a snapshot of the leader's has taken the log's place meanwhile, and begins further on."""
        if start.end_offset > self.log.start_offset:
            self.log.start_from(start)

    # --- voters

    def _add_voter(self, voter: Voter) -> None:
        self._check_may_change_voters()
        if self.voters.has_node(voter.key.node_id):
            raise BrokerError(ErrorCode.DUPLICATE_VOTER, f"Node {voter.key.node_id} is a voter already.")
        if not self.is_caught_up(voter.key):
            text = f"Node {voter.key.node_id} with this directory does not follow the metadata log closely enough yet."
            raise BrokerError(ErrorCode.REQUEST_TIMED_OUT, text)
        self._change_voters(self.voters.added(voter))

    def _remove_voter(self, key: VoterKey) -> None:
        self._check_may_change_voters()
        if key not in self.voters:
            raise BrokerError(ErrorCode.VOTER_NOT_FOUND, f"Node {key.node_id} with this directory is no voter.")
        if len(self.voters) == 1:
            raise BrokerError(ErrorCode.INVALID_REQUEST, "The last voter cannot be removed.")
        self._change_voters(self.voters.removed(key))

    def _check_may_change_voters(self) -> None:
        if not self.is_leader:
            raise BrokerError(ErrorCode.NOT_CONTROLLER, "This node does not lead the metadata quorum.")
        is_pending = self._voters.latest_offset >= (self.high_watermark or 0)
        if is_pending or not self.has_committed_in_epoch:
            text = "Another change of voters, or the start of this epoch, is not committed yet: try again."
            raise BrokerError(ErrorCode.REQUEST_TIMED_OUT, text)

    def is_caught_up(self, key: VoterKey) -> bool:
        """Follows closely enough to vote without holding up commits."""
        progress = self.progress.get(key)
        if progress is None or progress.last_fetch_ms is None:
            return False
        is_recent = self._now_ms - progress.last_fetch_ms <= self._timing.fetch_timeout_ms
        return is_recent and progress.durable_end_offset >= (self.high_watermark or 0)

    def _change_voters(self, voters: VoterSet) -> None:
        """In force at once. The own address goes along: a cluster that began alone has none in its first record."""
        mine = [replace(v, endpoints=self.endpoints) if v.key == self.me else v for v in voters.voters]
        voters = VoterSet.of(mine)
        entry = self._entry((encode_voters(voters),))
        self._append(entry, [(entry.base_offset, voters)])
        self._hear_from_everybody()
        self._begin_epoch()
        self._advance()
