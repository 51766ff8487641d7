"""What goes into the quorum core and what comes out of it."""

from __future__ import annotations

from dataclasses import dataclass, field

from broker_engine.quorum.election_state import ElectionState, VoterKey
from broker_engine.quorum.log_index import LogPosition
from broker_engine.quorum.messages import Answer, Request
from broker_engine.quorum.voter_set import Voter, VoterSet

# --- events


@dataclass(frozen=True, slots=True)
class Start:
    """The node is up: its log is recovered and its election state read."""


@dataclass(frozen=True, slots=True)
class Tick:
    """`next_deadline_ms` has come. Harmless at any other time."""


@dataclass(frozen=True, slots=True)
class Asked:
    """Another node's request: the Ready has the answer."""

    request: Request


@dataclass(frozen=True, slots=True)
class Answered:
    """The answer to a request of ours."""

    node_id: int
    answer: Answer


@dataclass(frozen=True, slots=True)
class SendFailed:
    """A request of ours got no answer."""

    node_id: int
    request: Request
    is_refused: bool = False
    """Nobody listens there: the process is gone."""


@dataclass(frozen=True, slots=True)
class PeerLost:
    """The connection to a node broke."""

    node_id: int
    is_refused: bool
    """A redial was refused: the process is gone, so there is no reason to wait out a silence."""


@dataclass(frozen=True, slots=True)
class Propose:
    """Values to write as one batch: all of them or none are ever seen. Leader only."""

    values: tuple[bytes, ...]


@dataclass(frozen=True, slots=True)
class Flushed:
    """Everything below `end_offset` of the own log is on disk."""

    end_offset: int


@dataclass(frozen=True, slots=True)
class SnapshotLoaded:
    """`ready.fetch_snapshot` is on disk, and the log is empty from its end on."""

    snapshot: LogPosition
    voters: VoterSet


@dataclass(frozen=True, slots=True)
class SnapshotProgressed:
    """A piece of it came, or it is being read: the leader is not silent, and this node not idle."""

    snapshot: LogPosition


@dataclass(frozen=True, slots=True)
class SnapshotServed:
    """Leader: a node reads a snapshot here. It will fetch again when it has it."""

    replica: VoterKey


@dataclass(frozen=True, slots=True)
class SnapshotFailed:
    """It could not be had: damaged, or gone from the leader meanwhile."""

    snapshot: LogPosition


@dataclass(frozen=True, slots=True)
class LogShortened:
    """Entries below a snapshot of the own were let go."""

    start: LogPosition


@dataclass(frozen=True, slots=True)
class AddVoter:
    """Leader only. BrokerError says why not."""

    voter: Voter


@dataclass(frozen=True, slots=True)
class RemoveVoter:
    """Leader only. BrokerError says why not."""

    key: VoterKey


@dataclass(frozen=True, slots=True)
class Resign:
    """The node stops, or its disk failed: it leads no more in this epoch."""


SnapshotEvent = SnapshotProgressed | SnapshotServed | SnapshotLoaded | SnapshotFailed | LogShortened
Event = (
    Start
    | Tick
    | Asked
    | Answered
    | SendFailed
    | PeerLost
    | Propose
    | Flushed
    | SnapshotEvent
    | AddVoter
    | RemoveVoter
    | Resign
)

# --- output


@dataclass(frozen=True, slots=True)
class Entry:
    """One batch of the metadata log."""

    epoch: int
    base_offset: int
    values: tuple[bytes, ...]
    control_key: bytes | None = None
    """Set for a control batch: the key of its one record."""
    batch: bytes = field(default=b"", compare=False, repr=False)
    """The bytes as the leader stored them, where it came from one."""

    @property
    def is_control(self) -> bool:
        return self.control_key is not None

    @property
    def end_offset(self) -> int:
        return self.base_offset + len(self.values)


@dataclass(frozen=True, slots=True)
class Ready:
    """The fields stand in the order in which they must be carried out, all of them before the next step."""

    persist_state: ElectionState | None = None
    """1. Write and fsync. Nothing of this epoch may be written or sent before that."""
    truncate_to: int | None = None
    """2. Cut the log, durably."""
    append: tuple[Entry, ...] = ()
    """3. Append to the log with `entry.epoch` as leader epoch; fsync, and report Flushed, at leisure."""
    send: tuple[tuple[int, Request], ...] = ()
    """4. (node id, request): report Answered or SendFailed for each."""
    answer: Answer | None = None
    """4. To the request that was stepped."""
    fetch_snapshot: LogPosition | None = None
    """5. Get it from the leader, report SnapshotLoaded or SnapshotFailed. Replaces one that is under way."""
    high_watermark: int | None = None
    """6. Set when it moved: everything below it is committed. Replay it, then answer those who proposed it."""


NOTHING = Ready()
