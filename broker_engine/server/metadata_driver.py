"""Drives the metadata: what is decided is written by the quorum, and each new image is shown whole.

An image is shown after the logs of its new partitions are open, so that what a client can see it can also write
to. Every node replays the same entries, and only those below the quorum's high watermark.
"""

from __future__ import annotations

import asyncio
import dataclasses
import logging
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar
from uuid import UUID

from broker_engine.clock import Clock, Randomness, SystemRandomness
from broker_engine.errors import BrokerError, ErrorCode
from broker_engine.log.files import Files
from broker_engine.metadata.controller import bootstrap
from broker_engine.metadata.image import EMPTY_IMAGE, MetadataImage, ReplayError
from broker_engine.metadata.records import UnknownRecordError, decode_record
from broker_engine.quorum.election_state import ElectionStateError, VoterKey
from broker_engine.quorum.ready import AddVoter, Entry, Propose, RemoveVoter, Resign
from broker_engine.quorum.state import DEFAULT_TIMING, Timing
from broker_engine.quorum.voter_set import Voter, VoterEndpoint, VoterSet
from broker_engine.server.bell import Bell
from broker_engine.server.metadata_commands import Command, Commands, not_controller
from broker_engine.server.metadata_recovery import Recovered, recover
from broker_engine.server.metadata_snapshots import Snapshot
from broker_engine.server.partitions import Partitions
from broker_engine.server.peers import Peers
from broker_engine.server.raft_node import RaftNode
from broker_engine.server.raft_peers import RaftPeers
from broker_engine.server.raft_voters import VoterJoiner
from broker_engine.server.snapshot_maker import SnapshotMaker
from broker_engine.server.supervisor import Supervisor

log = logging.getLogger(__name__)

_FAREWELL_S = 1.0
_IN_THREAD_MIN = 500
"""So many records are decoded and replayed in a thread."""

R = TypeVar("R")


@dataclass(frozen=True, slots=True, kw_only=True)
class QuorumOptions:
    """How a node takes part. The default is a cluster of one."""

    cluster_id: str = ""
    is_founder: bool = True
    """The cluster began in this directory: its log may begin with this node as the only voter."""
    may_vote: bool = True
    named_ids: tuple[int, ...] = ()
    """Nodes of `--quorum`: asked for the leader, and made voters once they follow."""
    endpoints: tuple[VoterEndpoint, ...] = ()
    timing: Timing = DEFAULT_TIMING
    snapshot_bytes: int = 20 << 20
    snapshot_interval_ms: int = 3_600_000


ALONE = QuorumOptions()


@dataclass(slots=True)
class _Unapplied:
    """What is in the log and not yet in the image, in order."""

    entries: deque[Entry] = field(default_factory=deque)
    snapshot: Snapshot | None = None
    """It comes first: the entries follow it."""


class MetadataDriver:
    def __init__(
        self,
        *,
        node_id: int,
        directory_id: UUID,
        files: Files,
        clock: Clock,
        partitions: Partitions,
        on_failure: Callable[[Exception], None],
        on_shown: Callable[[MetadataImage, MetadataImage], None] = lambda old, new: None,
        options: QuorumOptions = ALONE,
        peers: Peers | None = None,
        randomness: Randomness | None = None,
    ) -> None:
        self.image: MetadataImage = EMPTY_IMAGE
        self.applied_offset = 0
        """The image holds everything below it."""
        self.on_leadership: Callable[[bool], None] = lambda is_leader: None
        # A node that may not vote says so by having no directory: nobody will make a voter of it.
        self._me = VoterKey(node_id, directory_id if options.may_vote else UUID(int=0))
        self._options = options
        self._files = files
        self._clock = clock
        self._partitions = partitions
        self._on_failure = on_failure
        self._on_shown = on_shown
        self._peers = peers
        self._randomness = randomness or SystemRandomness()
        self._node: RaftNode | None = None
        self._was_leader = False
        """What `on_leadership` was told last."""
        self._has_failed = False
        self._unapplied = _Unapplied()
        self._applied = Bell()
        self._showing = asyncio.Lock()
        self._has_open_partitions = False
        self._commands = Commands(self)
        self._tasks = Supervisor()
        self._joiner: VoterJoiner | None = None
        self._voters_logged: VoterSet | None = None

    # --- what others ask for

    @property
    def is_started(self) -> bool:
        return self._node is not None

    @property
    def node(self) -> RaftNode:
        if self._node is None:
            raise BrokerError(ErrorCode.BROKER_NOT_AVAILABLE, "this node's metadata log is not open yet")
        return self._node

    @property
    def is_leader(self) -> bool:
        """Leads, committed something in its own epoch, and shows all that was written before."""
        if self._node is None or self._has_failed:
            return False
        core = self._node.core
        return core.has_committed_in_epoch and self.applied_offset > core.epoch_start_offset

    @property
    def leader_id(self) -> int | None:
        return self._node.core.leader_id if self._node is not None else None

    @property
    def epoch(self) -> int:
        return self._node.core.epoch if self._node is not None else 0

    @property
    def voters(self) -> VoterSet:
        return self._node.core.voters if self._node is not None else VoterSet()

    def address_of_voter(self, node_id: int) -> tuple[str, int] | None:
        """As it was given when the voter was added."""
        endpoints = [e for voter in self.voters.voters if voter.key.node_id == node_id for e in voter.endpoints]
        return (endpoints[0].host, endpoints[0].port) if endpoints else None

    async def wait_for_offset(self, next_offset: int) -> None:
        while self.applied_offset < next_offset:
            await self._applied.wait()

    async def wait_for_news(self, timeout_s: float) -> None:
        await self._applied.wait(timeout_s)

    async def commit(self, command: Command[R]) -> tuple[R, ...]:
        """Decide, write, wait for the quorum, show; then what the command answers. BrokerError where it refuses, and
        NOT_CONTROLLER where this node does not lead, or no longer does before that is committed.
        """
        return await self._commands.commit(command)

    async def add_voter(self, voter: Voter) -> None:
        """When the change is committed. BrokerError says why not."""
        await self._change_voters(AddVoter(voter))

    async def remove_voter(self, key: VoterKey) -> None:
        await self._change_voters(RemoveVoter(key))

    async def propose(self, values: tuple[bytes, ...]) -> Entry:
        """For `Commands`: in the log, and on its way to the others."""
        (entry,) = (await self.node.step(Propose(values))).append
        return entry

    async def _change_voters(self, event: AddVoter | RemoveVoter) -> None:
        node = self.node
        (entry,) = (await node.step(event)).append
        while self.applied_offset < entry.end_offset:
            is_undecided = (node.core.high_watermark or 0) < entry.end_offset
            if is_undecided and not (node.core.is_leader and node.core.epoch == entry.epoch):
                raise not_controller()
            await node.news.wait(_FAREWELL_S)

    async def resign(self) -> None:
        """Another voter takes over, if there is one."""
        if self._node is not None and self._node.core.is_leader and len(self._node.core.voters) > 1:
            await self._node.step(Resign())
            await self._node.say_farewell(_FAREWELL_S)

    def on_peer_lost(self, node_id: int, is_refused: bool) -> None:
        if self._node is not None:
            self._node.on_peer_lost(node_id, is_refused)

    # --- life

    async def start(self) -> None:
        """Recover the log and take part in the quorum; the only voter leads when this returns.

        BrokerError says why that cannot be.
        """
        try:
            recovered = await asyncio.to_thread(self._recover)
        except (ElectionStateError, UnknownRecordError, ReplayError) as error:
            raise BrokerError(ErrorCode.KAFKA_STORAGE_ERROR, f"the metadata log: {error}") from error
        self._take_up(recovered)
        if recovered.core.is_only_voter:
            await self._wait_for_leadership()
            await self.commit(
                lambda image: bootstrap(image, voter_id=self._me.node_id, directory_id=self._me.directory_id)
            )

    def _recover(self) -> Recovered:
        return recover(
            self._files,
            self._clock,
            me=self._me,
            timing=self._options.timing,
            random_below=lambda limit: int(self._randomness.unit() * limit),
            bootstrap_ids=self._options.named_ids,
            endpoints=self._options.endpoints,
            may_found=self._options.is_founder,
        )

    def _take_up(self, recovered: Recovered) -> None:
        options = self._options
        peers = None
        if self._peers is not None:
            peers = RaftPeers(self._peers, self._me, options.cluster_id, options.timing)
            self._peers.on_lost.append(self.on_peer_lost)
        self._node = node = RaftNode(
            recovered.core,
            recovered.log,
            files=self._files,
            clock=self._clock,
            peers=peers,
            on_failure=self._on_disk_failed,
        )
        node.on_appended = self._unapplied.entries.append
        node.on_truncated = self._on_truncated
        node.on_snapshot = self._on_snapshot
        node.on_stepped = self._on_stepped
        self._unapplied.snapshot = recovered.snapshot
        self._unapplied.entries.extend(recovered.unapplied)
        self._maker = SnapshotMaker(
            node, self._clock, bytes_between=options.snapshot_bytes, interval_ms=options.snapshot_interval_ms
        )
        self._joiner = VoterJoiner(self, options.named_ids, self._peers)
        self._tasks.spawn(self._guarded(self._apply_for_ever), "metadata image")
        self._tasks.spawn(self._guarded(self._commands.run), "metadata commands")
        node.start()

    async def _guarded(self, work: Callable[[], Any]) -> None:
        try:
            await work()
        except Exception as error:
            log.exception("the metadata cannot be followed")
            self._on_disk_failed(error)

    def _on_disk_failed(self, error: Exception) -> None:
        self._has_failed = True
        self._commands.fail_all(BrokerError(ErrorCode.KAFKA_STORAGE_ERROR, "the metadata log failed"))
        self._on_failure(error)

    async def _wait_for_leadership(self) -> None:
        while not self.is_leader:
            await self._applied.wait()
        log.info("leading the metadata log in epoch %d up to offset %d", self.epoch, self.applied_offset)

    async def open_partitions(self) -> None:
        """From now on the image's partitions are served here."""
        async with self._showing:
            self._has_open_partitions = True
            await self._partitions.open_missing(EMPTY_IMAGE, self.image)

    async def open_unopened_partitions(self) -> int:
        """Those whose logs could not be opened; how many can be now."""
        async with self._showing:
            return await self._partitions.open_unopened()

    async def stop(self) -> None:
        self._tell_leadership(is_leader=False)
        await self._tasks.stop()
        if self._joiner is not None:
            await self._joiner.stop()
        if self._node is not None:
            await self._maker.stop()
            await self._node.stop()

    # --- leadership

    def _on_stepped(self) -> None:
        self._log_voters()
        self._tell_leadership(is_leader=self.is_leader)

    def _tell_leadership(self, *, is_leader: bool) -> None:
        if is_leader == self._was_leader:
            return
        self._was_leader = is_leader
        if not is_leader:
            self._commands.fail_undecided(self.node.core.high_watermark or 0)
        self._applied.ring()
        if self._joiner is not None:
            self._joiner.on_leadership(is_leader)
        self.on_leadership(is_leader)

    def _log_voters(self) -> None:
        voters = self.node.core.voters
        if voters != self._voters_logged:
            self._voters_logged = voters
            log.info("the metadata has voters %s", ", ".join(str(key.node_id) for key in voters.keys) or "nobody yet")

    # --- the image

    def _on_truncated(self, offset: int) -> None:
        entries = self._unapplied.entries
        while entries and entries[-1].base_offset >= offset:
            entries.pop()

    def _on_snapshot(self, snapshot: Snapshot) -> None:
        self._unapplied.snapshot = snapshot
        self._unapplied.entries.clear()

    async def _apply_for_ever(self) -> None:
        while True:
            if not await self._apply_committed():
                await self.node.news.wait()

    async def _apply_committed(self) -> bool:
        """False where there was nothing to do."""
        snapshot, self._unapplied.snapshot = self._unapplied.snapshot, None
        entries = self._take_committed()
        if snapshot is None and not entries:
            return False
        is_behind = snapshot is not None and snapshot.position.end_offset > self.applied_offset
        base = snapshot.image if is_behind and snapshot is not None else self.image
        fresh = [entry for entry in entries if entry.base_offset >= base.next_offset]
        is_large = sum(len(entry.values) for entry in fresh) >= _IN_THREAD_MIN
        image = await asyncio.to_thread(_replay, base, fresh) if is_large else _replay(base, fresh)
        await self._show(image)
        floor = snapshot.position.end_offset if snapshot is not None else 0
        self.applied_offset = max(self.applied_offset, floor, *(entry.end_offset for entry in entries))
        self._commands.settle(self.applied_offset)
        self._on_stepped()
        self._applied.ring()
        self._maker.on_applied(self.image, self.applied_offset, entries)
        return True

    def _take_committed(self) -> list[Entry]:
        high_watermark, entries = self.node.core.high_watermark or 0, self._unapplied.entries
        taken = []
        while entries and entries[0].end_offset <= high_watermark:
            taken.append(entries.popleft())
        return taken

    async def _show(self, new: MetadataImage) -> None:
        async with self._showing:
            old = self.image
            if new is old:
                return
            if self._has_open_partitions:
                await self._partitions.open_missing(old, new)
            self.image = new
            self._on_shown(old, new)
            if self._has_open_partitions:
                await self._partitions.retire_removed(old, new)


def _replay(image: MetadataImage, entries: list[Entry]) -> MetadataImage:
    """Stands after the last entry, be it a control record, as an image from a snapshot does: offsets are compared."""
    for entry in entries:
        if not entry.is_control:
            image = image.replay(map(decode_record, entry.values), entry.base_offset)
    return dataclasses.replace(image, next_offset=entries[-1].end_offset) if entries else image
