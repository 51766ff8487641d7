"""Leading: open the epoch with LeaderChange, take proposals, serve followers, count what is durable where.

A leader that a majority of voters no longer fetches from steps down after 1.5 fetch time-outs: somebody else may lead
by then, and clients must not wait here.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from broker_engine.errors import BrokerError, ErrorCode
from broker_engine.quorum.control import leader_change
from broker_engine.quorum.election_state import VoterKey
from broker_engine.quorum.following import Following, voter_sets_in
from broker_engine.quorum.messages import BeginEpochRequest, EndEpochRequest, FetchAnswer, FetchRequest
from broker_engine.quorum.ready import Entry
from broker_engine.quorum.roles import Role

_OBSERVER_FORGOTTEN_MS = 300_000


@dataclass(slots=True)
class Progress:
    """What a leader knows of another node in its epoch."""

    durable_end_offset: int = 0
    last_fetch_ms: int | None = None
    last_caught_up_ms: int | None = None


class Leading(Following):
    def __init__(self, **arguments: Any) -> None:
        super().__init__(**arguments)
        self.progress: dict[VoterKey, Progress] = {}
        """Of voters and observers, while leading."""
        self.epoch_start_offset = 0
        self._begin_at_ms: int | None = None
        self._check_at_ms: int | None = None
        self._heard_from: dict[VoterKey, None] = {}
        """Voters that fetched since the last time that a majority had."""

    @property
    def has_committed_in_epoch(self) -> bool:
        """Leads, and the LeaderChange of this epoch is committed: everything before it is known too."""
        return self.is_leader and (self.high_watermark or 0) > self.epoch_start_offset

    def _become_leader(self, granting: Iterable[VoterKey]) -> None:
        self._move_to(Role.LEADER)
        self.known_leader_id = self.me.node_id
        self._failed_election_count = 0
        self.epoch_start_offset = self.log.end_offset
        self.progress = {key: Progress() for key in self.voters.others(self.me)}
        key, value = leader_change(self.me.node_id, self.voters.keys, granting)
        self._append(self._entry((value,), control_key=key), [])
        self._hear_from_everybody()
        self._begin_epoch()

    def _entry(self, values: tuple[bytes, ...], control_key: bytes | None = None) -> Entry:
        return Entry(self.epoch, self.log.end_offset, values, control_key)

    # --- keeping the others

    def _begin_epoch(self) -> None:
        """Again and again to those who have not fetched: a message may get lost, and they know nothing else."""
        strangers = [key for key in self.voters.others(self.me) if self._has_never_fetched(key)]
        for key in strangers:
            request = BeginEpochRequest(request_id=self._next_request_id(), epoch=self.epoch, leader=self.me, voter=key)
            self._send(key.node_id, request)
        self._begin_at_ms = self._now_ms + self._timing.fetch_timeout_ms // 2 if strangers else None

    def _has_never_fetched(self, key: VoterKey) -> bool:
        return key not in self.progress or self.progress[key].last_fetch_ms is None

    def _hear_from_everybody(self) -> None:
        self._heard_from = {}
        is_alone = not self.voters.others(self.me)
        self._check_at_ms = None if is_alone else self._now_ms + self._timing.check_quorum_ms

    def _note_fetch(self, key: VoterKey) -> None:
        if key in self.voters:
            self._heard_from[key] = None
        heard_count = sum(1 for key in self.voters.keys if key == self.me or key in self._heard_from)
        if heard_count >= self.voters.majority_count:
            self._hear_from_everybody()
            self._forget_observers()

    def _tick_leader(self) -> None:
        if self._is_due(self._check_at_ms):
            self._resign()
        elif self._is_due(self._begin_at_ms):
            self._begin_epoch()

    def _forget_observers(self) -> None:
        oldest_ms = self._now_ms - _OBSERVER_FORGOTTEN_MS
        for key, progress in list(self.progress.items()):
            if key not in self.voters and (progress.last_fetch_ms or 0) < oldest_ms:
                del self.progress[key]

    # --- stepping down

    def _resign(self) -> None:
        """Proposals that are not committed stay undecided: the next leader's log says what became of them."""
        if not self.is_leader:
            return
        successors = self._successors()
        for key in successors:
            request = EndEpochRequest(
                request_id=self._next_request_id(), epoch=self.epoch, leader=self.me, successors=successors
            )
            self._send(key.node_id, request)
        if self.is_voter:
            self._move_to(Role.RESIGNED)
            self._election_at_ms = self._now_ms + self._random_election_ms()
        else:
            self._become_unattached(epoch=self.epoch)

    def _successors(self) -> tuple[VoterKey, ...]:
        """The one with the longest log first."""
        known = {key: self.progress.get(key, Progress()) for key in self.voters.others(self.me)}
        return tuple(sorted(known, key=lambda key: (-known[key].durable_end_offset, key)))

    # --- serving followers

    def _on_fetch_request(self, request: FetchRequest) -> None:
        answer = self.answer_fetch(request)
        if self.is_leader and answer.error is ErrorCode.NONE:
            self._note_progress(request, answer)
            # What this very fetch committed is news to who sent it.
            answer = self.answer_fetch(request)
        self._out.answer = answer

    def _note_progress(self, request: FetchRequest, answer: FetchAnswer) -> None:
        progress = self.progress.setdefault(request.replica, Progress())
        progress.last_fetch_ms = self._now_ms
        self._note_fetch(request.replica)
        if not answer.has_place_for_entries:
            return
        # A repeated request from earlier says less, but nothing false: what is durable in an epoch stays so.
        progress.durable_end_offset = max(progress.durable_end_offset, request.fetch_offset)
        if request.fetch_offset >= self.log.end_offset:
            progress.last_caught_up_ms = self._now_ms
        self._advance()

    def _on_snapshot_served(self, replica: VoterKey) -> None:
        if self.is_leader:
            self.progress.setdefault(replica, Progress()).last_fetch_ms = self._now_ms
            self._note_fetch(replica)

    def answer_fetch(self, request: FetchRequest) -> FetchAnswer:
        """What there is to say at this moment. Changes nothing: a shell that lets a request wait asks again."""
        error = self._fetch_error(request)
        if error is not ErrorCode.NONE:
            return FetchAnswer(request_id=request.request_id, epoch=self.epoch, leader_id=self.leader_id, error=error)
        position = self.log.end_of(request.last_epoch)
        is_gone = request.fetch_offset < self.log.start_offset or position is None
        is_diverging = position is not None and (
            position.epoch != request.last_epoch or position.end_offset < request.fetch_offset
        )
        return FetchAnswer(
            request_id=request.request_id,
            epoch=self.epoch,
            leader_id=self.leader_id,
            high_watermark=self.high_watermark,
            snapshot=self.log.start if is_gone else None,
            diverging=position if is_diverging and not is_gone else None,
            fetch_offset=request.fetch_offset,
        )

    def _fetch_error(self, request: FetchRequest) -> ErrorCode:
        if request.epoch < self.epoch:
            return ErrorCode.FENCED_LEADER_EPOCH
        if request.epoch > self.epoch:
            return ErrorCode.UNKNOWN_LEADER_EPOCH
        return ErrorCode.NONE if self.is_leader else ErrorCode.NOT_LEADER_OR_FOLLOWER

    # --- writing

    def _propose(self, values: tuple[bytes, ...]) -> None:
        if not self.is_leader:
            raise BrokerError(ErrorCode.NOT_CONTROLLER, "This node does not lead the metadata quorum.")
        assert values, "an empty batch has no offset to wait for"
        entry = self._entry(values)
        sets = voter_sets_in(entry)
        assert all(voters.keys == self.voters.keys for _, voters in sets), "voters change by AddVoter and RemoveVoter"
        self._append(entry, sets)

    def _on_flushed(self, end_offset: int) -> None:
        assert end_offset <= self.log.end_offset, "only what was written can be on disk"
        self.durable_end_offset = max(self.durable_end_offset, end_offset)
        if self.is_leader:
            self._advance()

    def _advance(self) -> None:
        agreed = self._agreed_end_offset()
        if self._may_commit(agreed):
            self._commit_up_to(agreed)
            self._resign_if_removed()

    def _agreed_end_offset(self) -> int:
        """How far a majority of the voters has the log on disk. A leader that is no voter does not count itself."""
        ends = [
            self.durable_end_offset if key == self.me else self.progress.get(key, Progress()).durable_end_offset
            for key in self.voters.keys
        ]
        return sorted(ends, reverse=True)[self.voters.majority_count - 1]

    def _may_commit(self, agreed: int) -> bool:
        """An older epoch's entries are committed by the LeaderChange above them, never by counting copies
        (Raft 5.4.2).
        """
        return agreed > self.epoch_start_offset

    def _resign_if_removed(self) -> None:
        if not self.is_voter and self._voters.latest_offset < (self.high_watermark or 0):
            self._resign()
