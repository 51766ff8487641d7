"""RaftNode: carries out what the quorum core says, in its order, one step at a time: durable before told.

State and truncations are waited for; appends go to the page cache, and one flush at a time makes them durable while the
next ones are written. Requests to other nodes are tasks of their own, and so is a snapshot on its way.
"""

from __future__ import annotations

import asyncio
import logging
from collections import defaultdict, deque
from collections.abc import Callable
from dataclasses import dataclass

from broker_engine.client.errors import ConnectionFailed
from broker_engine.clock import Clock
from broker_engine.errors import BrokerError
from broker_engine.log.files import Files
from broker_engine.quorum import messages as m
from broker_engine.quorum import ready as r
from broker_engine.quorum.core import QuorumCore
from broker_engine.quorum.election_state import VoterKey, encode_election_state
from broker_engine.quorum.log_index import LogPosition
from broker_engine.server.bell import Bell
from broker_engine.server.complaint import Complaint
from broker_engine.server.metadata_log import DIRECTORY, MetadataLog
from broker_engine.server.metadata_snapshots import MetadataSnapshots, Snapshot, SnapshotError
from broker_engine.server.peers import is_refused
from broker_engine.server.raft_peers import RaftPeers
from broker_engine.server.supervisor import Supervisor
from broker_engine.server.voters import voters_of

log = logging.getLogger(__name__)

QUORUM_STATE = f"{DIRECTORY}/quorum-state"


@dataclass(frozen=True, slots=True)
class _Install:
    """A snapshot is here and verified: it takes the place of the log, if it is still wanted."""

    snapshot: Snapshot


_Item = tuple["r.Event | _Install", "asyncio.Future[r.Ready] | None"]


class RaftNode:
    def __init__(
        self,
        core: QuorumCore,
        metadata_log: MetadataLog,
        *,
        files: Files,
        clock: Clock,
        peers: RaftPeers | None,
        on_failure: Callable[[Exception], None],
    ) -> None:
        self.core = core
        self.log = metadata_log
        self.snapshots = MetadataSnapshots(files)
        self.news = Bell()
        """The log grew, the high watermark moved, or the role changed."""
        self.on_appended: Callable[[r.Entry], None] = lambda entry: None
        self.on_truncated: Callable[[int], None] = lambda offset: None
        self.on_snapshot: Callable[[Snapshot], None] = lambda snapshot: None
        self.on_stepped: Callable[[], None] = lambda: None
        self._files = files
        self._clock = clock
        self._peers = peers
        self._on_failure = on_failure
        self._inbox: deque[_Item] = deque()
        self._wake = asyncio.Event()
        self._tasks = Supervisor()
        self._flushing: asyncio.Task[None] | None = None
        self._loading: asyncio.Task[None] | None = None
        self._loading_position: LogPosition | None = None
        self._complaints: defaultdict[int, Complaint] = defaultdict(Complaint)
        self._farewells: list[asyncio.Task[None]] = []
        self._point_lock = asyncio.Lock()
        """Held while a thread cuts the log or begins it anew: no checkpoint of what was durable is written then, and no
        segment begun."""
        self._told: dict[VoterKey, int | None] = {}
        """The high watermark that each follower knows from its last answer."""

    def start(self) -> None:
        self.post(r.Start())
        self._tasks.spawn(self._run(), "metadata quorum")

    async def stop(self) -> None:
        await self._tasks.stop()
        await asyncio.to_thread(self.log.close)

    def post(self, event: r.Event) -> None:
        self._put(event, None)

    async def step(self, event: r.Event) -> r.Ready:
        """When its effects are carried out. BrokerError where the core refuses it."""
        done: asyncio.Future[r.Ready] = asyncio.get_running_loop().create_future()
        self._put(event, done)
        return await done

    def _put(self, event: r.Event | _Install, done: asyncio.Future[r.Ready] | None) -> None:
        self._inbox.append((event, done))
        self._wake.set()

    def on_peer_lost(self, node_id: int, is_refused: bool) -> None:
        self.post(r.PeerLost(node_id, is_refused))

    async def say_farewell(self, timeout_s: float) -> None:
        """For a node that resigned and stops: the others should have heard of it."""
        if self._farewells:
            await asyncio.wait(self._farewells, timeout=timeout_s)

    # --- one step at a time

    async def _run(self) -> None:
        try:
            while True:
                await self._take_next()
        except Exception as error:
            self._on_failure(error)

    async def _take_next(self) -> None:
        if self._is_deadline_due:
            await self._take(r.Tick(), None)
        elif self._inbox:
            await self._take(*self._inbox.popleft())
        else:
            await self._wait_for_work()

    @property
    def _is_deadline_due(self) -> bool:
        deadline_ms = self.core.next_deadline_ms
        return deadline_ms is not None and self._clock.monotonic_ms() >= deadline_ms

    async def _wait_for_work(self) -> None:
        self._wake.clear()
        deadline_ms = self.core.next_deadline_ms
        timeout_s = None if deadline_ms is None else max(0, deadline_ms - self._clock.monotonic_ms()) / 1000
        try:
            async with asyncio.timeout(timeout_s):
                await self._wake.wait()
        except TimeoutError:
            return

    async def _take(self, event: r.Event | _Install, done: asyncio.Future[r.Ready] | None) -> None:
        if isinstance(event, _Install):
            await self._install(event.snapshot)
            return
        try:
            ready = self.core.step(event, self._clock.monotonic_ms())
        except BrokerError as error:
            if done is None:
                raise
            if not done.done():
                done.set_exception(error)
            return
        await self._carry_out(ready)
        if done is not None and not done.done():
            done.set_result(ready)
        self.on_stepped()

    async def _carry_out(self, ready: r.Ready) -> None:
        if ready.persist_state is not None:
            await asyncio.to_thread(self._write_state, encode_election_state(ready.persist_state))
        if ready.truncate_to is not None:
            await self._truncate(ready.truncate_to)
        for entry in ready.append:
            self.log.append(entry)
            self.on_appended(entry)
        if ready.append and self._flushing is None:
            self._flushing = self._tasks.spawn(self._flush(), "metadata flush")
        for node_id, request in ready.send:
            task = self._tasks.spawn(self._tell(node_id, request), f"tell node {node_id}")
            if isinstance(request, m.EndEpochRequest):
                self._farewells.append(task)
        if ready.fetch_snapshot is not None:
            self._load(ready.fetch_snapshot)
        self.news.ring()

    def _write_state(self, data: bytes) -> None:
        try:
            self._files.write_atomic(QUORUM_STATE, data, is_durable=True)
        except OSError:
            if not self.log.reserve.release():
                raise
            self._files.write_atomic(QUORUM_STATE, data, is_durable=True)

    async def _truncate(self, offset: int) -> None:
        log.info(
            "cutting the metadata log from %d to %d, where it parts from the leader's", self.log.end_offset, offset
        )
        await self._end_flush()
        async with self._point_lock:
            await asyncio.to_thread(self.log.truncate_to, offset)
        self.on_truncated(offset)

    async def _end_flush(self) -> None:
        """Nothing is cut during one, and what it says of the log before a cut counts no more. The core fetches when all
        records are durable, but a segment that was begun meanwhile leaves a flush of its own.
        """
        while self._flushing is not None:
            await asyncio.wait({self._flushing})
        self._inbox = deque(item for item in self._inbox if not isinstance(item[0], r.Flushed))

    async def roll(self) -> None:
        """Never while a thread cuts the log, or begins it anew."""
        async with self._point_lock:
            self.log.roll()

    async def let_go_below(self, offset: int) -> None:
        """The core knows by now that the log begins there."""
        async with self._point_lock:
            for deleted in self.log.take_out_below(offset):
                await asyncio.to_thread(deleted.remove)

    # --- durability

    async def _flush(self) -> None:
        try:
            while (job := self.log.flush_job()) is not None:
                await asyncio.to_thread(job.run)
                self.post(r.Flushed(self.log.on_flushed(job)))
        except BrokerError as error:
            self._on_failure(error)
        finally:
            self._flushing = None
        if self.log.is_point_due:
            await self._save_point()

    async def _save_point(self) -> None:
        async with self._point_lock:
            try:
                await asyncio.to_thread(self.log.save_point)
            except OSError as error:
                log.warning("the next start will check the metadata log from further back: %s", error)

    # --- other nodes

    async def _tell(self, node_id: int, request: m.Request) -> None:
        assert self._peers is not None, "a node alone has nobody to talk to"
        try:
            answer = await self._peers.ask(node_id, request)
        except ConnectionFailed as error:
            self.post(r.SendFailed(node_id, request, is_refused(error)))
        except BrokerError as error:
            if self._complaints[node_id].is_news(str(error)):
                log.warning("node %d: %s", node_id, error)
            self.post(r.SendFailed(node_id, request))
        except Exception:
            log.exception("an answer of node %d cannot be read", node_id)
            self.post(r.SendFailed(node_id, request))  # or the core would wait for it for ever
        else:
            self._complaints[node_id].settle()
            self.post(r.Answered(node_id, answer))

    async def answer(self, request: m.Request) -> m.Answer:
        ready = await self.step(r.Asked(request))
        assert ready.answer is not None
        return ready.answer

    async def answer_fetch(
        self, request: m.FetchRequest, *, max_wait_ms: int, max_bytes: int
    ) -> tuple[m.FetchAnswer, bytes]:
        """Waits until there is something to tell: entries, a high watermark, another role."""
        answer = await self.answer(request)
        assert isinstance(answer, m.FetchAnswer)
        loop = asyncio.get_running_loop()
        deadline_s = loop.time() + max_wait_ms / 1000
        while True:
            records = self._records_for(answer, max_bytes)
            left_s = deadline_s - loop.time()
            if records or self._is_news(request, answer) or left_s <= 0:
                self._told[request.replica] = answer.high_watermark
                return answer, records
            await self.news.wait(left_s)
            answer = self.core.answer_fetch(request)

    def _records_for(self, answer: m.FetchAnswer, max_bytes: int) -> bytes:
        if not answer.has_place_for_entries or answer.fetch_offset >= self.log.end_offset:
            return b""
        return self.log.read(answer.fetch_offset, max_bytes)

    def _is_news(self, request: m.FetchRequest, answer: m.FetchAnswer) -> bool:
        return not answer.has_place_for_entries or self._told.get(request.replica) != answer.high_watermark

    # --- snapshots

    def _load(self, position: LogPosition) -> None:
        if self._loading is not None and not self._loading.done():
            if self._loading_position == position:
                return  # asked for again in another epoch: it is the same there
            self._loading.cancel()
        self._loading_position = position
        leader_id = self.core.known_leader_id
        assert leader_id is not None
        self._loading = self._tasks.spawn(self._fetch_snapshot(leader_id, position), "fetch a metadata snapshot")

    async def _fetch_snapshot(self, leader_id: int, position: LogPosition) -> None:
        assert self._peers is not None
        log.info("fetching the metadata snapshot at offset %d from node %d", position.end_offset, leader_id)
        try:
            snapshot = await self._peers.fetch_snapshot(
                leader_id, position, self.core.epoch, self.snapshots, lambda: self.post(r.SnapshotProgressed(position))
            )
        except (ConnectionFailed, BrokerError, SnapshotError) as error:
            log.warning("the metadata snapshot at offset %d could not be had: %s", position.end_offset, error)
            self.post(r.SnapshotFailed(position))
        else:
            self._put(_Install(snapshot), None)

    async def _install(self, snapshot: Snapshot) -> None:
        if self.core.loading != snapshot.position:
            return  # another epoch began meanwhile, and its leader may say otherwise
        await self._end_flush()
        async with self._point_lock:
            await asyncio.to_thread(self.log.begin_anew, snapshot.position.end_offset)
        self.on_snapshot(snapshot)
        await self._take(r.SnapshotLoaded(snapshot.position, voters_of(snapshot.image)), None)
