"""What the disk knows of the metadata at start: quorum state, newest readable snapshot, log. All in one thread.

The log begins at zero, or at the end of a snapshot. A snapshot that reaches beyond the log, or parts from it, was
fetched from a leader, and the node died before it was put in place: the log begins anew there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from broker_engine.clock import Clock
from broker_engine.errors import BrokerError, ErrorCode
from broker_engine.log.files import Files
from broker_engine.quorum.core import QuorumCore
from broker_engine.quorum.election_state import ElectionState, VoterKey, decode_election_state
from broker_engine.quorum.following import voter_sets_in
from broker_engine.quorum.log_index import NO_LOG, LogIndex, LogPosition
from broker_engine.quorum.ready import Entry
from broker_engine.quorum.state import Timing
from broker_engine.quorum.voter_set import Voter, VoterEndpoint, VoterSet
from broker_engine.server.metadata_log import DIRECTORY, MetadataLog
from broker_engine.server.metadata_snapshots import MetadataSnapshots, Snapshot
from broker_engine.server.raft_node import QUORUM_STATE
from broker_engine.server.voters import voters_of

_FOUNDING_OFFSET = 0


@dataclass(frozen=True, slots=True)
class Recovered:
    core: QuorumCore
    log: MetadataLog
    snapshot: Snapshot | None
    unapplied: list[Entry]
    """What follows the snapshot."""


def recover(
    files: Files,
    clock: Clock,
    *,
    me: VoterKey,
    timing: Timing,
    random_below: Callable[[int], int],
    bootstrap_ids: Iterable[int],
    endpoints: tuple[VoterEndpoint, ...],
    may_found: bool,
) -> Recovered:
    """BrokerError, ElectionStateError: the node must not start."""
    state = decode_election_state(files.read_small(QUORUM_STATE)) if files.exists(QUORUM_STATE) else None
    is_new = not files.exists(DIRECTORY)
    snapshots = list(MetadataSnapshots(files).readable())
    newest = snapshots[0] if snapshots else None
    opened = MetadataLog.open(files, clock)
    # A process that was killed may have left names in there that are not on the disk yet. From now on this node tells
    # others of its epoch and its vote: were power to fail then, it would vote a second time.
    files.sync_dir(DIRECTORY)
    if is_new:
        files.sync_dir("")  # else a vote in there could vanish with the directory
    start = _start_of(opened, snapshots)
    entries = [] if start is None else list(opened.entries(start.end_offset))
    if newest is not None and _replaces(newest.position, opened, start, entries):
        opened.begin_anew(newest.position.end_offset)
        start, entries = newest.position, []
    if start is None or (state is None and opened.end_offset > 0):
        raise _lost(opened, "quorum-state is gone" if state is None else "no snapshot before its log can be read")
    index = LogIndex(epoch_starts=_epoch_starts(entries), end_offset=opened.end_offset, start=start)
    voters = _voter_sets(start, snapshots, entries)
    if not voters and (may_found or _has_founded(state, me)):
        voters = [(-1, VoterSet((Voter(me, endpoints),)))]
    core = QuorumCore(
        me=me,
        state=state,
        log=index,
        voters=voters,
        random_below=random_below,
        timing=timing,
        bootstrap_ids=bootstrap_ids,
        endpoints=endpoints,
        high_watermark=None if newest is None else newest.position.end_offset,
    )
    applied = 0 if newest is None else newest.position.end_offset
    return Recovered(core, opened, newest, [entry for entry in entries if entry.base_offset >= applied])


def _start_of(opened: MetadataLog, snapshots: list[Snapshot]) -> LogPosition | None:
    """Where the log begins, and the epoch before that; None where no snapshot can say."""
    if opened.start_offset == 0:
        return NO_LOG
    inside = [
        each.position for each in snapshots if opened.start_offset <= each.position.end_offset <= opened.end_offset
    ]
    return min(inside, key=lambda position: position.end_offset) if inside else None


def _replaces(snapshot: LogPosition, opened: MetadataLog, start: LogPosition | None, entries: list[Entry]) -> bool:
    """Never by an older one: what lies between it and the log was durable here, and others may have counted on it."""
    if snapshot.end_offset > opened.end_offset:
        return True
    if start is None:
        return False
    before = [entry.epoch for entry in entries if entry.end_offset <= snapshot.end_offset]
    return (before[-1] if before else start.epoch) != snapshot.epoch


def _lost(opened: MetadataLog, what: str) -> BrokerError:
    opened.close()
    text = (
        f"{DIRECTORY}: {what}: restore the data directory from a copy, or empty it, and it comes back as a new member"
    )
    return BrokerError(ErrorCode.KAFKA_STORAGE_ERROR, text)


def _epoch_starts(entries: list[Entry]) -> list[tuple[int, int]]:
    """From the entries themselves: the log's own cache may name an epoch whose first entry a crash took."""
    starts: list[tuple[int, int]] = []
    for entry in entries:
        if not starts or entry.epoch > starts[-1][0]:
            starts.append((entry.epoch, entry.base_offset))
    return starts


def _voter_sets(start: LogPosition, snapshots: list[Snapshot], entries: list[Entry]) -> list[tuple[int, VoterSet]]:
    at_start = [each for each in snapshots if each.position == start]
    sets = [(start.end_offset - 1, voters_of(each.image)) for each in at_start]
    return sets + [found for entry in entries for found in voter_sets_in(entry)]


def _has_founded(state: ElectionState | None, me: VoterKey) -> bool:
    """It voted for itself before it wrote who votes: only the founder of a cluster does."""
    return state is not None and state.voted_for == me
