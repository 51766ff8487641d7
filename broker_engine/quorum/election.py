"""Elections: who may stand, who is voted for, who has won.

Prospective first (KIP-996): a node asks whether it would win before it raises the epoch, and nobody who hears from a
leader says yes. So a node that was cut off, or that was removed, disturbs nobody when it comes back. A voter that does
not answer counts as a refusal, so that a lost round ends at once and the next one begins after a short random pause.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from broker_engine.errors import ErrorCode
from broker_engine.quorum.election_state import VoterKey
from broker_engine.quorum.messages import EndEpochRequest, EpochAnswer, VoteAnswer, VoteRequest
from broker_engine.quorum.roles import Role
from broker_engine.quorum.state import QuorumState


@dataclass(slots=True)
class _Round:
    asked: dict[int, VoterKey] = field(default_factory=dict)
    """By request id."""
    is_granted: dict[VoterKey, bool] = field(default_factory=dict)


class Elections(QuorumState):
    def __init__(self, **arguments: Any) -> None:
        super().__init__(**arguments)
        self._round = _Round()

    # --- standing for election

    def _stand(self) -> None:
        """Ask whether an election would be won; the only voter need not ask."""
        assert self.may_stand
        self._move_to(Role.PROSPECTIVE)
        self._ask_for_votes(epoch=self.epoch, is_pre_vote=True)

    def _become_candidate(self) -> None:
        self._move_to(Role.CANDIDATE)
        self._enter_epoch(self.epoch + 1)
        self.voted_for = self.me
        self._ask_for_votes(epoch=self.epoch, is_pre_vote=False)

    def _ask_for_votes(self, *, epoch: int, is_pre_vote: bool) -> None:
        self._election_at_ms = self._now_ms + self._random_election_ms()
        self._round = _Round(is_granted={self.me: True} if self.is_voter else {})
        for voter in self.voters.others(self.me):
            request_id = self._next_request_id()
            self._round.asked[request_id] = voter
            request = VoteRequest(
                request_id=request_id,
                epoch=epoch,
                candidate=self.me,
                voter=voter,
                last=self.log.last,
                is_pre_vote=is_pre_vote,
            )
            self._send(voter.node_id, request)
        self._count_votes()

    def _on_vote_answer(self, node_id: int, answer: VoteAnswer) -> None:
        self._hear(answer.epoch, answer.leader_id, from_id=node_id)
        is_answer_to_this = answer.request_id in self._round.asked and answer.is_pre_vote == (
            self.role is Role.PROSPECTIVE
        )
        if self.role in {Role.PROSPECTIVE, Role.CANDIDATE} and is_answer_to_this and answer.epoch == self.epoch:
            self._round.is_granted[self._round.asked[answer.request_id]] = answer.is_granted
            self._count_votes()

    def _on_no_vote(self, request_id: int) -> None:
        """Nobody listens there, or it has only just started: it has no say in this round, so let there be another."""
        voter = self._round.asked.get(request_id)
        if voter is not None and self.role in {Role.PROSPECTIVE, Role.CANDIDATE}:
            self._round.is_granted.setdefault(voter, False)
            self._count_votes()

    def _count_votes(self) -> None:
        granted_count = sum(self._round.is_granted.values())
        refused_count = len(self._round.is_granted) - granted_count
        if granted_count >= self.voters.majority_count:
            self._win()
        elif refused_count > len(self.voters) - self.voters.majority_count:
            self._lose()

    def _win(self) -> None:
        if self.role is Role.PROSPECTIVE:
            self._become_candidate()
        else:
            self._become_leader(key for key, is_granted in self._round.is_granted.items() if is_granted)

    def _become_leader(self, granting: Iterable[VoterKey]) -> None:
        raise NotImplementedError

    def _lose(self) -> None:
        """Refused, or not answered in time: try again after a pause that grows, so that two do not collide for long."""
        limit_ms = self._timing.election_backoff_ms_first << min(self._failed_election_count, 10)
        self._failed_election_count += 1
        pause_ms = self._random_below(min(limit_ms, self._timing.election_backoff_ms_max) + 1)
        self._become_unattached(epoch=self.epoch, election_in_ms=pause_ms)

    def _on_election_due(self) -> None:
        match self.role:
            case Role.UNATTACHED | Role.FOLLOWER if self.may_stand:
                self._stand()
            case Role.UNATTACHED | Role.FOLLOWER | Role.RESIGNED:
                self._become_unattached(epoch=self.epoch)
            case Role.PROSPECTIVE | Role.CANDIDATE:
                self._lose()
            case Role.LEADER:
                raise AssertionError("a leader stands for nothing")

    def _on_leader_gone(self) -> None:
        """Its process is gone: no reason to wait out a silence. Jitter keeps the others from standing at once too."""
        assert self.role is Role.FOLLOWER
        self._gone_leader_id = self.known_leader_id
        jitter_ms = self._random_below(self._timing.lost_leader_jitter_ms + 1)
        self._become_unattached(epoch=self.epoch, election_in_ms=jitter_ms)

    # --- voting

    def _on_vote_request(self, request: VoteRequest) -> None:
        if request.voter != self.me:
            self._out.answer = self._vote_answer(request, error=ErrorCode.INVALID_VOTER_KEY)
            return
        if request.epoch > self.epoch:
            self._become_unattached(epoch=request.epoch)
        if request.epoch < self.epoch:
            self._out.answer = self._vote_answer(request, error=ErrorCode.FENCED_LEADER_EPOCH)
            return
        grants: Callable[[VoteRequest], bool] = self._grants_pre_vote if request.is_pre_vote else self._grants_vote
        is_granted = grants(request)
        if is_granted and not request.is_pre_vote:
            self._vote_for(request.candidate)
        self._out.answer = self._vote_answer(request, is_granted=is_granted)

    def _grants_pre_vote(self, request: VoteRequest) -> bool:
        return not self._is_in_touch and request.last >= self.log.last

    @property
    def _is_in_touch(self) -> bool:
        """Leads, or hears from the leader: no election is wanted."""
        return self.is_leader or (self.role is Role.FOLLOWER and self._has_fetched and not self._is_silent)

    @property
    def _is_silent(self) -> bool:
        return self._is_due(self._election_at_ms)

    def _grants_vote(self, request: VoteRequest) -> bool:
        """One vote an epoch, and none where a leader is known; never for a log that lacks something of the own."""
        is_free = self.known_leader_id is None and self.voted_for in {None, request.candidate}
        return is_free and request.last >= self.log.last

    def _vote_for(self, candidate: VoterKey) -> None:
        assert self.voted_for in {None, candidate}, "one vote an epoch"
        self.voted_for = candidate
        self._become_unattached(epoch=self.epoch)

    def _vote_answer(
        self, request: VoteRequest, *, is_granted: bool = False, error: ErrorCode = ErrorCode.NONE
    ) -> VoteAnswer:
        return VoteAnswer(
            request_id=request.request_id,
            epoch=self.epoch,
            # Not from hearsay: two followers of a leader that is gone would hold each other back for ever.
            leader_id=self.leader_id if self._is_in_touch else None,
            voter=self.me,
            is_granted=is_granted,
            is_pre_vote=request.is_pre_vote,
            error=error,
        )

    # --- a leader that steps down

    def _on_end_epoch_request(self, request: EndEpochRequest) -> None:
        error = ErrorCode.FENCED_LEADER_EPOCH if request.epoch < self.epoch else ErrorCode.NONE
        is_mine = request.leader.node_id == self.me.node_id
        if error is ErrorCode.NONE and not is_mine and self.role is not Role.LEADER:
            self._on_leader_resigned(request)
        self._out.answer = EpochAnswer(
            request_id=request.request_id, epoch=self.epoch, leader_id=self.leader_id, error=error
        )

    def _on_leader_resigned(self, request: EndEpochRequest) -> None:
        if request.epoch == self.epoch and self.role not in {Role.FOLLOWER, Role.UNATTACHED}:
            return  # this node is on its way already
        place = request.successors.index(self.me) if self.me in request.successors else len(request.successors)
        pause_ms = place * self._timing.lost_leader_jitter_ms
        self._become_unattached(epoch=request.epoch, election_in_ms=pause_ms)
        self.known_leader_id = self._gone_leader_id = request.leader.node_id
        if place == 0 and self.may_stand:
            self._stand()
