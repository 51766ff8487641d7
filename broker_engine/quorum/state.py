"""What a node of the quorum knows, and the moves between roles that everybody shares. The rest is in its subclasses.

Timers are plain deadlines in milliseconds of a monotonic clock: the shell steps a Tick when the next one has come.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from broker_engine.quorum.election_state import NO_NODE, ElectionState, VoterKey
from broker_engine.quorum.log_index import LogIndex, LogPosition
from broker_engine.quorum.messages import Answer, FetchRequest, Request
from broker_engine.quorum.ready import Entry, Ready
from broker_engine.quorum.roles import NEXT_ROLES, Role
from broker_engine.quorum.voter_set import VoterEndpoint, VoterHistory, VoterSet


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """Kafka's defaults, by Kafka's names."""

    election_timeout_ms: int = 1000
    fetch_timeout_ms: int = 2000
    election_backoff_ms_max: int = 1000
    election_backoff_ms_first: int = 100
    fetch_retry_ms: int = 50
    lost_leader_jitter_ms: int = 150
    """After a refused redial (contracts.md section 8)."""

    @property
    def check_quorum_ms(self) -> int:
        return self.fetch_timeout_ms * 3 // 2


DEFAULT_TIMING = Timing()


@dataclass(slots=True)
class Draft:
    """A Ready in the making."""

    truncate_to: int | None = None
    append: list[Entry] = field(default_factory=list)
    send: list[tuple[int, Request]] = field(default_factory=list)
    answer: Answer | None = None
    fetch_snapshot: LogPosition | None = None
    high_watermark: int | None = None


class QuorumState:
    def __init__(
        self,
        *,
        me: VoterKey,
        state: ElectionState | None,
        log: LogIndex,
        voters: Iterable[tuple[int, VoterSet]],
        random_below: Callable[[int], int],
        timing: Timing = DEFAULT_TIMING,
        bootstrap_ids: Iterable[int] = (),
        endpoints: tuple[VoterEndpoint, ...] = (),
        high_watermark: int | None = None,
    ) -> None:
        """`state` is None on a new disk. `voters` are the sets of the log, each with its record's offset.

        Everything in the log at the start must be on disk: recovery has cut what was not, and synced the rest.
        """
        self.me = me
        self.log = log
        self.role = Role.UNATTACHED
        # A log may know a later epoch than a lost or older state file: believe the higher one.
        known = state if state is not None and state.epoch >= log.last.epoch else ElectionState(log.last.epoch)
        self.epoch = known.epoch
        self.voted_for = known.voted_for
        self.known_leader_id = None if known.leader_id == NO_NODE else known.leader_id
        """Who leads or led in this epoch, whether or not it still answers."""
        self.durable_end_offset = log.end_offset
        self.high_watermark = high_watermark
        """Everything below it is committed; None while this node cannot know."""
        self.endpoints = endpoints
        self._voters = VoterHistory(voters)
        self._timing = timing
        self._random_below = random_below
        self._bootstrap_ids = tuple(bootstrap_ids)
        self._persisted = (known.epoch, known.voted_for) if state is not None else None
        self._now_ms = 0
        self._request_id = 0
        self._out = Draft()
        self._election_at_ms: int | None = None
        """An election begins: the leader is silent, there is none, or the last election failed."""
        self._fetch_at_ms: int | None = None
        """The next fetch, where it must not go out at once."""
        self._fetch: FetchRequest | None = None
        """The one that is under way."""
        self._loading: LogPosition | None = None
        """The snapshot that is on its way here."""
        self._has_fetched = False
        """The leader of this epoch has answered once."""
        self._gone_leader_id: int | None = None
        """A leader of this epoch whose process is gone: hearsay about it is not believed."""
        self._failed_election_count = 0

    @property
    def voters(self) -> VoterSet:
        return self._voters.latest

    @property
    def is_voter(self) -> bool:
        return self.me in self.voters

    @property
    def may_stand(self) -> bool:
        """For election: a voter, or one whose removal is not committed yet."""
        return self._voters.may_stand(self.me, self.high_watermark or 0)

    @property
    def is_only_voter(self) -> bool:
        return self.voters.keys == (self.me,)

    @property
    def is_leader(self) -> bool:
        return self.role is Role.LEADER

    @property
    def leader_id(self) -> int | None:
        """The leader that this node follows, or is."""
        return self.known_leader_id if self.role in {Role.LEADER, Role.FOLLOWER} else None

    @property
    def loading(self) -> LogPosition | None:
        """The snapshot that is waited for."""
        return self._loading

    # --- roles

    def _move_to(self, role: Role) -> None:
        assert role in NEXT_ROLES[self.role], f"{self.role.name} -> {role.name}"
        self.role = role
        self._election_at_ms = self._fetch_at_ms = self._fetch = self._loading = None

    def _enter_epoch(self, epoch: int) -> None:
        assert epoch > self.epoch, "epochs never go back"
        self.epoch = epoch
        self.voted_for = self.known_leader_id = self._gone_leader_id = None

    def _become_unattached(self, *, epoch: int, election_in_ms: int | None = None) -> None:
        """No leader is followed. A voter stands for election after a while; everybody asks around for the leader."""
        if epoch > self.epoch:
            self._enter_epoch(epoch)
        self._move_to(Role.UNATTACHED)
        self._fetch_at_ms = self._now_ms + self._timing.fetch_retry_ms
        if self.may_stand:
            in_ms = self._random_election_ms() if election_in_ms is None else election_in_ms
            self._election_at_ms = self._now_ms + in_ms

    def _become_follower(self, *, epoch: int, leader_id: int) -> None:
        assert leader_id != self.me.node_id
        if epoch > self.epoch:
            self._enter_epoch(epoch)
        assert self.known_leader_id in {None, leader_id}, f"two leaders in epoch {epoch}"
        self.known_leader_id = leader_id
        self._gone_leader_id = None
        self._move_to(Role.FOLLOWER)
        self._has_fetched = False
        self._failed_election_count = 0
        self._election_at_ms = self._now_ms + self._timing.fetch_timeout_ms

    def _hear(self, epoch: int, leader_id: int | None, *, from_id: int) -> None:
        """What any answer says of the present epoch and leader."""
        if epoch < self.epoch:
            return
        is_hearsay = leader_id == self._gone_leader_id and from_id != leader_id and epoch == self.epoch
        if leader_id is None or leader_id == self.me.node_id or is_hearsay:
            if epoch > self.epoch:
                self._become_unattached(epoch=epoch)
        elif epoch > self.epoch or self.role in {Role.UNATTACHED, Role.PROSPECTIVE, Role.CANDIDATE}:
            self._become_follower(epoch=epoch, leader_id=leader_id)

    # --- small things

    def _random_election_ms(self) -> int:
        return self._timing.election_timeout_ms + self._random_below(self._timing.election_timeout_ms)

    def _next_request_id(self) -> int:
        self._request_id += 1
        return self._request_id

    def _send(self, node_id: int, request: Request) -> None:
        self._out.send.append((node_id, request))

    def _is_due(self, deadline_ms: int | None) -> bool:
        return deadline_ms is not None and self._now_ms >= deadline_ms

    def _finish(self) -> Ready:
        out, self._out = self._out, Draft()
        return Ready(
            persist_state=self._unpersisted(),
            truncate_to=out.truncate_to,
            append=tuple(out.append),
            send=tuple(out.send),
            answer=out.answer,
            fetch_snapshot=out.fetch_snapshot,
            high_watermark=out.high_watermark,
        )

    def _unpersisted(self) -> ElectionState | None:
        """A leader's name alone is not worth an fsync: forgetting it costs a question, never a vote."""
        if self._persisted == (self.epoch, self.voted_for):
            return None
        self._persisted = (self.epoch, self.voted_for)
        leader_id = NO_NODE if self.known_leader_id is None else self.known_leader_id
        return ElectionState(self.epoch, leader_id, self.voted_for)

    # --- the log

    def _append(self, entry: Entry, voter_sets: Iterable[tuple[int, VoterSet]]) -> None:
        self.log.append(entry.epoch, entry.base_offset, entry.end_offset)
        for offset, voters in voter_sets:
            self._voters.append(offset, voters)
        self._out.append.append(entry)

    def _commit_up_to(self, offset: int) -> None:
        assert offset <= self.log.end_offset, "only what was written can be committed"
        if self.high_watermark is not None and offset <= self.high_watermark:
            return
        self.high_watermark = offset
        self._out.high_watermark = offset
