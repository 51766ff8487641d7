"""Following: fetch from the leader, one request at a time, each after everything before it is on disk.

A node without a leader asks around with the same Fetch: whoever answers says who leads.
"""

from __future__ import annotations

from broker_engine.errors import ErrorCode
from broker_engine.quorum.election import Elections
from broker_engine.quorum.log_index import LogPosition
from broker_engine.quorum.messages import BeginEpochRequest, EpochAnswer, FetchAnswer, FetchRequest
from broker_engine.quorum.ready import Entry, SnapshotFailed, SnapshotLoaded
from broker_engine.quorum.roles import Role
from broker_engine.quorum.voter_set import VoterSet, decode_voters


class Following(Elections):
    def _on_begin_epoch_request(self, request: BeginEpochRequest) -> None:
        error = self._error_of(request)
        if error is ErrorCode.NONE and request.leader.node_id != self.me.node_id:
            is_known = self.role is Role.FOLLOWER and request.epoch == self.epoch
            if not is_known:
                self._become_follower(epoch=request.epoch, leader_id=request.leader.node_id)
        self._out.answer = EpochAnswer(
            request_id=request.request_id, epoch=self.epoch, leader_id=self.leader_id, error=error
        )

    def _error_of(self, request: BeginEpochRequest) -> ErrorCode:
        if request.voter != self.me:
            return ErrorCode.INVALID_VOTER_KEY
        return ErrorCode.FENCED_LEADER_EPOCH if request.epoch < self.epoch else ErrorCode.NONE

    # --- asking

    def _fetch_if_due(self) -> None:
        """A fetch says that everything before it is on disk: so it waits for that."""
        if self._may_fetch and self._is_fetch_time:
            target = self.known_leader_id if self.role is Role.FOLLOWER else self._anybody()
            if target is not None:
                self._send_fetch(target)

    @property
    def _may_fetch(self) -> bool:
        is_free = self._fetch is None and self._loading is None and self.durable_end_offset == self.log.end_offset
        return is_free and self.role in {Role.FOLLOWER, Role.UNATTACHED}

    @property
    def _is_fetch_time(self) -> bool:
        return self._fetch_at_ms is None or self._now_ms >= self._fetch_at_ms

    def _anybody(self) -> int | None:
        node_ids = sorted({key.node_id for key in self.voters.keys} | set(self._bootstrap_ids))
        others = [node_id for node_id in node_ids if node_id != self.me.node_id]
        return others[self._request_id % len(others)] if others else None

    def _send_fetch(self, node_id: int) -> None:
        self._fetch_at_ms = None
        self._fetch = FetchRequest(
            request_id=self._next_request_id(),
            epoch=self.epoch,
            replica=self.me,
            fetch_offset=self.log.end_offset,
            last_epoch=self.log.last.epoch,
        )
        self._send(node_id, self._fetch)

    def _retry_fetch_later(self) -> None:
        self._fetch = None
        pause_ms = self._timing.fetch_retry_ms
        self._fetch_at_ms = self._now_ms + pause_ms + self._random_below(pause_ms + 1)

    # --- what comes back

    def _on_fetch_answer(self, node_id: int, answer: FetchAnswer) -> None:
        is_late = self._fetch is None or answer.request_id != self._fetch.request_id
        epoch_before, role_before = self.epoch, self.role
        self._hear(answer.epoch, answer.leader_id, from_id=node_id)
        if is_late or (self.epoch, self.role) != (epoch_before, role_before):
            return
        is_leaders = self.role is Role.FOLLOWER and node_id == self.known_leader_id and answer.epoch == self.epoch
        if is_leaders and answer.error is ErrorCode.NOT_LEADER_OR_FOLLOWER:
            self._on_leader_gone()  # it resigned, or was started anew: it will not lead in this epoch again
            return
        if not is_leaders or answer.error is not ErrorCode.NONE:
            self._retry_fetch_later()
            return
        self._fetch = None
        self._has_fetched = True
        self._election_at_ms = self._now_ms + self._timing.fetch_timeout_ms
        self._accept(answer)

    def _accept(self, answer: FetchAnswer) -> None:
        if answer.diverging is not None:
            self._truncate_to(self.log.common_with(answer.diverging))
        elif answer.snapshot is not None:
            self._loading = self._out.fetch_snapshot = answer.snapshot
        else:
            for entry in answer.entries:
                self._append(entry, voter_sets_in(entry))
            if answer.high_watermark is not None:
                self._commit_up_to(min(answer.high_watermark, self.log.end_offset))

    def _truncate_to(self, offset: int) -> None:
        assert offset >= (self.high_watermark or 0), "what is committed is never cut off"
        if offset >= self.log.end_offset:
            self._retry_fetch_later()  # nothing to cut: the leader will say it otherwise, or has changed
            return
        self.log.truncate_to(offset)
        self._voters.truncate_to(offset)
        self.durable_end_offset = min(self.durable_end_offset, offset)
        self._out.truncate_to = offset

    # --- snapshots

    def _on_snapshot_progressed(self, snapshot: LogPosition) -> None:
        """Large ones take longer than a fetch may: the time-out is for silence."""
        if self._loading == snapshot:
            self._election_at_ms = self._now_ms + self._timing.fetch_timeout_ms

    def _on_snapshot_loaded(self, event: SnapshotLoaded) -> None:
        assert self._loading == event.snapshot, "only the one that was asked for is put in place"
        self._on_snapshot_progressed(event.snapshot)
        self._loading = None
        self.log.restart_at(event.snapshot)
        self._voters.restart_with(event.snapshot.end_offset - 1, event.voters)
        self.durable_end_offset = event.snapshot.end_offset
        self._commit_up_to(event.snapshot.end_offset)

    def _on_snapshot_failed(self, event: SnapshotFailed) -> None:
        if self._loading == event.snapshot:
            self._loading = None
            self._retry_fetch_later()


def voter_sets_in(entry: Entry) -> list[tuple[int, VoterSet]]:
    """The voter sets that an entry's records say, each with its offset."""
    if entry.is_control:
        return []
    decoded = ((entry.base_offset + index, decode_voters(value)) for index, value in enumerate(entry.values))
    return [(offset, voters) for offset, voters in decoded if voters is not None]
