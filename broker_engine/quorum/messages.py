"""What nodes of the quorum say to each other: requests, and the answer to each. Plain data: the shell owns the wire.

`request_id` is the sender's own, so that a late or repeated answer is known as such. Every answer carries the epoch of
who answers, and its leader as far as it follows one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from broker_engine.errors import ErrorCode
from broker_engine.quorum.election_state import VoterKey
from broker_engine.quorum.log_index import LogPosition

if TYPE_CHECKING:
    from broker_engine.quorum.ready import Entry


@dataclass(frozen=True, slots=True, kw_only=True)
class VoteRequest:
    request_id: int
    epoch: int
    """The candidate's new epoch; the present one for a pre-vote."""
    candidate: VoterKey
    voter: VoterKey
    """Who is asked: another directory under the same number has nothing to say."""
    last: LogPosition
    is_pre_vote: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class VoteAnswer:
    request_id: int
    epoch: int
    leader_id: int | None
    voter: VoterKey
    is_granted: bool
    is_pre_vote: bool
    error: ErrorCode = ErrorCode.NONE


@dataclass(frozen=True, slots=True, kw_only=True)
class BeginEpochRequest:
    """The leader of a new epoch makes itself known."""

    request_id: int
    epoch: int
    leader: VoterKey
    voter: VoterKey


@dataclass(frozen=True, slots=True, kw_only=True)
class EndEpochRequest:
    """The leader of an epoch resigns; the first of the successors need not wait for anything."""

    request_id: int
    epoch: int
    leader: VoterKey
    successors: tuple[VoterKey, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class EpochAnswer:
    """To BeginEpochRequest and EndEpochRequest."""

    request_id: int
    epoch: int
    leader_id: int | None
    error: ErrorCode = ErrorCode.NONE


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchRequest:
    """`fetch_offset` is durable at the sender, whose entry before it has `last_epoch`."""

    request_id: int
    epoch: int
    replica: VoterKey
    fetch_offset: int
    last_epoch: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchAnswer:
    """A leader's own has no entries: the shell reads them from the log, from `fetch_offset` on, where there is no
    error, no divergence and no snapshot.
    """

    request_id: int
    epoch: int
    leader_id: int | None
    error: ErrorCode = ErrorCode.NONE
    high_watermark: int | None = None
    diverging: LogPosition | None = None
    """Cut the log: the leader's last epoch that is not above the sender's, and where it ends."""
    snapshot: LogPosition | None = None
    """Load this first: the log begins above what the sender has."""
    fetch_offset: int = -1
    entries: tuple[Entry, ...] = ()

    @property
    def has_place_for_entries(self) -> bool:
        return self.error is ErrorCode.NONE and self.diverging is None and self.snapshot is None


Request = VoteRequest | BeginEpochRequest | EndEpochRequest | FetchRequest
Answer = VoteAnswer | EpochAnswer | FetchAnswer
