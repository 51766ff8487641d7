"""The metadata quorum: rules 24, 26, 27, 28 and 29 after each event, and F17 as far as it is about controllers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from uuid import UUID

from broker_engine.quorum.core import QuorumCore
from broker_engine.quorum.election_state import ElectionState, ElectionStateError, VoterKey, decode_election_state
from broker_engine.quorum.voter_set import VoterSet
from broker_engine.server.broker import Broker
from broker_engine.server.metadata_driver import MetadataDriver
from broker_engine.server.raft_node import QUORUM_STATE
from broker_engine.simulator.cluster import SimCluster
from broker_engine.simulator.node import SimNode
from broker_engine.simulator.sim_disk import SimDisk

Violate = Callable[[str, str], None]
_RESIGN_WITHIN_S = 3.0
"""Beyond the time after which a leader has to step down: for the disk, and for what is under way."""


@dataclass(slots=True)
class _Term:
    """What a leader of an epoch had committed when it was first seen to lead."""

    node_id: int
    high_watermark: int


class QuorumOracle:
    def __init__(self, cluster: SimCluster, violate: Violate) -> None:
        self._cluster = cluster
        self._violate = violate
        self._terms: dict[int, _Term] = {}
        self._votes: dict[SimDisk, ElectionState] = {}
        self._stamps: dict[SimDisk, tuple[int, VoterKey | None]] = {}
        self._disks: dict[UUID, SimDisk] = {}
        self._voters: dict[int, VoterSet] = {}
        self._alone_since_s: dict[int, float] = {}

    def look_at(self, node: SimNode, broker: Broker) -> None:
        driver: MetadataDriver | None = getattr(broker, "metadata", None)  # it is made in the midst of a start
        if driver is None or driver._node is None:
            return
        core = driver._node.core
        self._check_disk(node, core)
        if not core.is_leader:
            self._alone_since_s.pop(node.id, None)
            return
        self._check_term(node.id, core)
        if driver.is_leader and (core.high_watermark or 0) <= core.epoch_start_offset:
            self._violate("26 first its own epoch", f"node {node.id} decides in epoch {core.epoch} too early")
        self._check_voters(node.id, core)
        if broker.failure is None:  # else its metadata stands still, its port is closed, and it is about to end
            self._check_majority(node, core)

    def _check_term(self, node_id: int, core: QuorumCore) -> None:
        high_watermark, term = core.high_watermark or 0, self._terms.get(core.epoch)
        if term is None:
            self._terms[core.epoch] = _Term(node_id, high_watermark)
            if self._cluster.is_formed and not self._cluster.is_shaken:
                self._violate("F17 clocks depose nobody", f"node {node_id} leads epoch {core.epoch}, nothing happened")
        elif term.node_id != node_id:
            self._violate("24 one leader per epoch", f"epoch {core.epoch}: node {term.node_id} and node {node_id}")
        elif term.high_watermark < high_watermark <= core.epoch_start_offset:
            text = f"node {node_id} commits up to {high_watermark} in epoch {core.epoch}, which begins with"
            self._violate("26 first its own epoch", f"{text} {core.epoch_start_offset}")

    # --- what is on disk

    def _check_disk(self, node: SimNode, core: QuorumCore) -> None:
        """24: what a node told of its epoch and its vote, no crash takes back. 27: another disk is another voter."""
        stamp = (core.epoch, core.voted_for)
        if self._stamps.get(node.disk) == stamp:
            return
        self._stamps[node.disk] = stamp
        if self._disks.setdefault(core.me.directory_id, node.disk) is not node.disk and core.me.directory_id.int:
            self._violate("27 another disk is another voter", f"node {node.id} has the directory id of its former disk")
        if core.epoch < (known := self._votes.get(node.disk, ElectionState())).epoch:
            self._violate("24 votes are kept", f"node {node.id} is in epoch {core.epoch}, and was in {known}")
        elif core.epoch == known.epoch and known.voted_for not in (None, core.voted_for):
            self._violate("24 votes are kept", f"node {node.id} voted for {core.voted_for}, before that: {known}")
        stored = _stored(node.disk)
        if stored is not None and (stored.epoch, stored.voted_for) == stamp:
            self._votes[node.disk] = stored
        else:
            del self._stamps[node.disk]  # it is on its way to the disk: nobody has been told yet

    # --- voters

    def _check_voters(self, node_id: int, core: QuorumCore) -> None:
        """28"""
        before, now = self._voters.get(core.epoch), core.voters
        if before is now:
            return
        self._voters[core.epoch] = now
        if before is None:
            return
        changed = [key for key in (*before.keys, *now.keys) if (key in before.keys) != (key in now.keys)]
        if len(changed) > 1:
            self._violate("28 one voter at a time", f"node {node_id} in epoch {core.epoch}: {changed}")
        if changed and (core.high_watermark or 0) <= core.epoch_start_offset:
            self._violate("28 voters change after the epoch's first commit", f"node {node_id}, epoch {core.epoch}")

    def _check_majority(self, node: SimNode, core: QuorumCore) -> None:
        """29: who leads without a majority that fetches steps down."""
        now_s, process = self._cluster.loop.now_s, node.process
        is_held_up = process is None or process.executor_stalled_until_s > now_s - _RESIGN_WITHIN_S
        is_slow = process is not None and process.executor_delay_s > node.disk_delay_s
        if self._has_majority(node, core) or is_held_up or is_slow or node.was_paused_since(now_s - _RESIGN_WITHIN_S):
            self._alone_since_s.pop(node.id, None)
        elif now_s - self._alone_since_s.setdefault(node.id, now_s) > _RESIGN_WITHIN_S:
            self._violate("29 a leader without a majority resigns", f"node {node.id} leads epoch {core.epoch} on")

    def _has_majority(self, node: SimNode, core: QuorumCore) -> bool:
        oldest_ms = node.clock.monotonic_ms() - 2 * core._timing.check_quorum_ms
        heard_count = 0
        for key in core.voters.keys:
            progress = core.progress.get(key)
            is_heard = progress is not None and (progress.last_fetch_ms or 0) >= oldest_ms
            heard_count += key == core.me or is_heard
        return heard_count >= core.voters.majority_count or self._has_just_begun(core, oldest_ms)

    def _has_just_begun(self, core: QuorumCore, oldest_ms: int) -> bool:
        """It has as long as others to hear from a majority for the first time."""
        check_at_ms = core._check_at_ms
        return check_at_ms is None or check_at_ms - core._timing.check_quorum_ms >= oldest_ms


def _stored(disk: SimDisk) -> ElectionState | None:
    try:
        return decode_election_state(bytes(disk._inode(QUORUM_STATE).data))
    except (FileNotFoundError, ElectionStateError):
        return None
