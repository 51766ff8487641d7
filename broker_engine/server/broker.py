"""One broker: wires the parts, starts them in order, stops them so that nothing is lost.

Start: lock, meta, clean marker, metadata log (replayed, led), listeners bound, registration, logs opened, then serving.
Stop: no new connections, what was begun is answered, all logs flushed, checkpoints, the clean marker last.
"""

from __future__ import annotations

import asyncio
import dataclasses
import logging
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import NamedTuple

from broker_engine.config import BrokerConfig, Endpoint
from broker_engine.errors import BrokerError
from broker_engine.handlers import apis_of
from broker_engine.handlers.api import Call
from broker_engine.log.flush import FlushJob
from broker_engine.metadata.controller import account_of
from broker_engine.metadata.image import EMPTY_IMAGE, MetadataImage
from broker_engine.names import ROOT, Name
from broker_engine.net.stream import NetCounters, Stream
from broker_engine.net.tls import client_context
from broker_engine.quorum.state import Timing
from broker_engine.quorum.voter_set import VoterEndpoint
from broker_engine.security.accounts import Account, Accounts
from broker_engine.security.principal import BROKER_NAME, Principal, internal
from broker_engine.server.budget import ByteBudget
from broker_engine.server.checkpoints import HIGH_WATERMARKS, LOG_STARTS, RECOVERY_POINTS, read_checkpoint
from broker_engine.server.compactor import Compactor
from broker_engine.server.controller_channel import ControllerChannel
from broker_engine.server.controller_loop import ControllerLoop
from broker_engine.server.data_dir import DataDir, Meta
from broker_engine.server.directories import tidy
from broker_engine.server.disk_floor import DiskFloor
from broker_engine.server.doors import Doors
from broker_engine.server.fetch_sessions import FetchSessions
from broker_engine.server.first_use import FirstUse
from broker_engine.server.flush import FlushManager, crowd_flush
from broker_engine.server.formation import Formation, Identity
from broker_engine.server.group_coordinator import GroupCoordinator
from broker_engine.server.lifecycle import Lifecycle
from broker_engine.server.listeners import ListenerSpec, local_spec, parse_voters
from broker_engine.server.log_starts import LogStarts
from broker_engine.server.metadata_driver import MetadataDriver, QuorumOptions
from broker_engine.server.metadata_log import DIRECTORY as METADATA_DIRECTORY
from broker_engine.server.pacer import Pacer
from broker_engine.server.partitions import Partitions, SavedOffsets
from broker_engine.server.peers import Peers
from broker_engine.server.producer_ids import ProducerIds
from broker_engine.server.replica_sessions import ReplicaSessions
from broker_engine.server.replication import Replication
from broker_engine.server.scrubber import Scrubber
from broker_engine.server.session import Session
from broker_engine.server.supervisor import Supervisor
from broker_engine.server.surroundings import Surroundings
from broker_engine.server.upkeep import Upkeep
from broker_engine.telemetry.usage import Usage
from broker_engine.telemetry.writer import TelemetryWriter

log = logging.getLogger(__name__)

FETCH_BYTES_MAX = 55 * 1024 * 1024
"""Kafka's fetch.max.bytes of the broker."""
IN_FLIGHT_BYTES_MAX = 512 * 1024 * 1024
STOP_GRACE_S = 10.0
PASSWORD_THREAD_COUNT = 2
VOTE_WAIT_S_MAX = 3.0
_AFTER_CRASH = "the last stop was not clean, so logs are checked from their recovery points on"


class BrokerFailed(Exception):  # noqa: N818 - reads as what it is
    """The broker cannot go on; one line says why."""


class Node(NamedTuple):
    id: int
    host: str
    port: int
    rack: str | None


class Broker:
    def __init__(self, config: BrokerConfig, data_dir: Path, surroundings: Surroundings | None = None) -> None:
        self.config = config
        self.surroundings = surroundings or Surroundings()
        self.clock = self.surroundings.clock
        self.randomness = self.surroundings.randomness
        self.node_id = config.node_id
        self.request_bytes_max = config.socket_request_max_bytes
        self.fetch_bytes_max = FETCH_BYTES_MAX
        self.counters = NetCounters()
        self.dialer = self.surroundings.make_dialer(self.counters)
        self.usage = Usage()
        self.budget = ByteBudget(max(IN_FLIGHT_BYTES_MAX, config.socket_request_max_bytes))
        self.fetch_sessions = FetchSessions(config.max_incremental_fetch_session_cache_slots, self.randomness)
        self.replica_sessions = ReplicaSessions(self.randomness)
        self._doors = Doors(config, self.surroundings, self.counters)
        self._data_dir = DataDir(data_dir, self.surroundings.open_store)
        self._stop_requested = asyncio.Event()
        self._failure: Exception | None = None
        self.identity: Identity
        self.peers: Peers
        self._tasks = Supervisor()
        self._voters = parse_voters(config.controller_quorum_voters)
        self.password_threads = ThreadPoolExecutor(PASSWORD_THREAD_COUNT, thread_name_prefix="password")
        self._is_serving = False
        self.has_joined = False
        """Knows its cluster, and follows its metadata: before that it only says who it is."""

    # --- what handlers ask for

    @property
    def image(self) -> MetadataImage:
        return self.metadata.image if self.has_joined else EMPTY_IMAGE

    @property
    def cluster_id(self) -> str:
        return self.identity.cluster_id

    @property
    def broker_epoch(self) -> int:
        """One number per life of this process."""
        return self.lifecycle.epoch

    @property
    def is_self_fenced(self) -> bool:
        """Others may lead here by now: nothing is taken until the controller is heard of again."""
        return bool(self._voters) and self.lifecycle.is_self_fenced

    @property
    def connection_count(self) -> int:
        return self._doors.connection_count

    @property
    def known_leader(self) -> tuple[int | None, int]:
        """Who leads the metadata, and in which epoch, as far as this node knows."""
        if not self.has_joined:
            return None, -1
        return self.metadata.leader_id, self.metadata.epoch

    @property
    def is_controller(self) -> bool:
        """Leads the metadata, and has replayed all that its predecessors wrote."""
        return self.has_joined and self.metadata.is_leader

    def cluster_id_for(self, principal: Principal) -> str:
        """Root sees the real one; a tenant the id of a cluster of its own."""
        if principal.tenant == ROOT:
            return self.cluster_id
        tenant = self.image.tenant(principal.tenant)
        return f"lkc-{principal.tenant}" if tenant is None else tenant.cluster_id

    def nodes_for(self, listener: ListenerSpec) -> list[Node]:
        """Every live broker, by the address that leads back to the same kind of listener.

        Those that have just left too, for some seconds: librdkafka forgets a leader that it hears of in the same answer
        as of the end of the one before it, and asks again only after a second.
        """
        nodes = []
        for broker in self.image.brokers.values():
            is_listed = not broker.is_fenced or self.peers.has_left_lately(broker.id)
            for endpoint in broker.endpoints:
                if endpoint.name == listener.name and is_listed:
                    nodes.append(Node(broker.id, endpoint.host, endpoint.port, broker.rack))
        return nodes

    def create_on_first_use(self, names: list[Name], principal: Principal) -> None:
        if self.config.auto_create_topics_enable:
            self.first_use.create(names)

    # --- life

    def request_stop(self) -> None:
        self._stop_requested.set()

    def bound_endpoints(self) -> list[Endpoint]:
        return self._doors.endpoints()

    async def run(self, on_ready: Callable[[Broker], None]) -> None:
        """From start to stop. BrokerFailed and ConfigError say why it cannot go on."""
        try:
            if await self._start_unless_stopped():
                on_ready(self)
                await self._stop_requested.wait()
        except BrokerError as error:
            raise BrokerFailed(error.message or str(error)) from error
        finally:
            await self._stop()
        if self._failure is not None:
            raise BrokerFailed(f"stopped: {self._failure}")

    async def _start_unless_stopped(self) -> bool:
        """A node may wait long for others: it can be stopped meanwhile."""
        starting = asyncio.ensure_future(self._start())
        stopping = asyncio.ensure_future(self._stop_requested.wait())
        await asyncio.wait([starting, stopping], return_when=asyncio.FIRST_COMPLETED)
        stopping.cancel()
        if not starting.done():
            starting.cancel()
            await asyncio.gather(starting, return_exceptions=True)
            return False
        starting.result()
        return True

    def fail(self, error: Exception) -> None:
        """The disk is gone, or the metadata cannot be followed: stop, and do not call it clean."""
        log.critical("the broker cannot go on: %s", error, exc_info=error)
        self._failure = self._failure or error
        self.request_stop()

    async def _start(self) -> None:
        self._data_dir.lock()
        self._doors.bind()
        self._open_for_nodes()
        formation = Formation(self.identity, tuple(self._voters), self.peers, self.clock)
        meta = await formation.join(self._data_dir, self.randomness)
        self.identity = dataclasses.replace(self.identity, cluster_id=meta.cluster_id)
        previous_epoch = self._data_dir.take_clean_marker()
        is_new = not self._data_dir.files.exists(METADATA_DIRECTORY)
        how = "first start" if is_new else _AFTER_CRASH if previous_epoch is None else "after a clean stop"
        log.info("node %d of cluster %s on %s: %s", self.node_id, meta.cluster_id, self._data_dir.path, how)
        self._make_parts(meta)
        await self.metadata.start()
        if self.config.is_broker:
            await self._become_broker(previous_epoch)
        self._is_serving = True
        await self._wait_to_vote()

    def _open_for_nodes(self) -> None:
        """Other nodes may ask who we are from the first moment on: nobody could form a cluster otherwise."""
        meta = self._data_dir.load_meta(self.node_id)
        self.identity = Identity(
            node_id=self.node_id,
            cluster_id="" if meta is None else meta.cluster_id,
            directory_id=self.randomness.uuid() if meta is None else meta.directory_id,
            incarnation_id=self.randomness.uuid(),
            is_controller=self.config.is_controller,
        )
        secret = self._cluster_secret()
        self.accounts = Accounts(secret, self._find_account, self._tenant_exists)
        self.peers = Peers(
            node_id=self.node_id,
            dialer=self.dialer,
            clock=self.clock,
            randomness=self.randomness,
            cluster_secret=secret,
            find_address=self._find_controller_address,
            tls=client_context(self.config.ssl_certificate_file) if self.config.ssl_certificate_file else None,
        )
        self._doors.open_for_nodes(self._make_session, self.budget)

    async def _wait_to_vote(self) -> None:
        """So that a new cluster whose nodes are all ready can lose one of them. Who is not named in the leader's
        `--quorum` stays an observer, and is ready after a while.
        """
        try:
            async with asyncio.timeout(VOTE_WAIT_S_MAX):
                while self._is_to_vote:
                    await self.metadata.node.news.wait()
        except TimeoutError:
            log.info("this node follows the metadata without a vote")

    @property
    def _is_to_vote(self) -> bool:
        is_voter = any(key.directory_id == self.identity.directory_id for key in self.metadata.voters.keys)
        return self.config.is_controller and len(self._voters) > 1 and not is_voter

    async def _become_broker(self, previous_epoch: int | None) -> None:
        """Registered, with open logs, unfenced, serving: in this order."""
        await self.controller.wait_for_leader()
        controller_endpoint = self._doors.controller_endpoint()
        await self.lifecycle.register(
            self.identity, self._doors.client_endpoints(), controller_endpoint, previous_epoch
        )
        self._tasks.keep_running(self.lifecycle.run, "heartbeats")
        # Only now is the image sure to know everything that this directory may hold.
        await self.metadata.wait_for_offset(self.lifecycle.epoch + 1)
        await asyncio.to_thread(tidy, self._data_dir.files, self.image, self.randomness)
        self.replication.start()
        await self._open_partitions()
        self.lifecycle.ask_to_serve()
        await self.lifecycle.is_unfenced.wait()
        self._serve()

    def _find_controller_address(self, node_id: int) -> tuple[str, int] | None:
        """By --quorum; nodes that are not named there say at registration where they are."""
        named = self._voters.get(node_id)
        if named is not None:
            return named.host, named.port
        broker = self.image.brokers.get(node_id)
        endpoint = None if broker is None else broker.controller_endpoint
        return None if endpoint is None else (endpoint.host, endpoint.port)

    async def _open_partitions(self) -> None:
        started_ms = self.clock.monotonic_ms()
        await self.metadata.open_partitions()
        log.info("%d partitions opened in %d ms", len(self.partitions), self.clock.monotonic_ms() - started_ms)

    def _make_parts(self, meta: Meta) -> None:
        files = self._data_dir.files
        self.flush: FlushManager[FlushJob] = FlushManager(
            self.clock, self.fail, crowd=crowd_flush(files, self.config.log_flush_syncfs)
        )
        saved = SavedOffsets(
            read_checkpoint(files, RECOVERY_POINTS),
            read_checkpoint(files, LOG_STARTS),
            read_checkpoint(files, HIGH_WATERMARKS),
        )
        self.partitions = Partitions(
            node_id=self.node_id,
            files=files,
            clock=self.clock,
            randomness=self.randomness,
            config=self.config,
            request_flush=self.flush.request,
            saved=saved,
        )
        self.metadata = MetadataDriver(
            node_id=self.node_id,
            directory_id=meta.directory_id,
            files=files,
            clock=self.clock,
            partitions=self.partitions,
            on_failure=self.fail,
            on_shown=self._on_image_shown,
            options=self._quorum_options(meta),
            peers=self.peers,
            randomness=self.randomness,
        )
        self.has_joined = True
        spec = local_spec(self._doors.specs)
        local = Session(self, spec, apis_of(spec), "this node")
        self.controller = ControllerChannel(
            node_id=self.node_id,
            clock=self.clock,
            peers=self.peers,
            find_leader=lambda: self.known_leader[0],
            apis=local.apis,
            make_call=lambda version: Call(self, local, internal(BROKER_NAME), version, None),
        )
        self.controller_loop = ControllerLoop(self)
        self.metadata.on_leadership = self.controller_loop.on_leadership
        self.lifecycle = Lifecycle(
            config=self.config,
            clock=self.clock,
            controller=self.controller,
            metadata_offset=lambda: self.image.next_offset - 1,
            on_fatal=self.fail,
        )
        self.first_use = FirstUse(self.controller, self._tasks)
        self.groups = GroupCoordinator(self)
        self.disk_floor = DiskFloor(self.config.log_dir_free_bytes_min, self._data_dir.store.space)
        self.disk_floor.look()
        self.producer_ids = ProducerIds(self.controller, self.node_id, lambda: self.broker_epoch)
        self.log_starts = LogStarts(self.partitions, files)
        self._upkeep = Upkeep(self.partitions, self.log_starts, files, self.config, self.clock)
        self.partitions.after_removal = self._upkeep.write_recovery_points
        self.replication = Replication(
            config=self.config,
            clock=self.clock,
            partitions=self.partitions,
            peers=self.peers,
            controller=self.controller,
            broker_epoch=lambda: self.broker_epoch,
            lower_points=self._upkeep.write_recovery_points,
        )
        make_pacer = partial(Pacer, sleep=self.surroundings.sleep_in_thread)
        self._scrubber = Scrubber(self.partitions, make_pacer=make_pacer)
        backoff_ms = self.config.log_cleaner_backoff_ms
        self._compactor = Compactor(self.partitions, files, self.clock, backoff_ms=backoff_ms, make_pacer=make_pacer)

    def _quorum_options(self, meta: Meta) -> QuorumOptions:
        config, named = self.config, self._voters.get(self.node_id)
        return QuorumOptions(
            cluster_id=meta.cluster_id,
            is_founder=meta.is_founder or not self._voters,
            may_vote=config.is_controller,
            named_ids=tuple(self._voters),
            endpoints=() if named is None else (VoterEndpoint(named.name, named.host, named.port),),
            timing=Timing(
                election_timeout_ms=config.controller_quorum_election_timeout_ms,
                fetch_timeout_ms=config.controller_quorum_fetch_timeout_ms,
                election_backoff_ms_max=config.controller_quorum_election_backoff_max_ms,
            ),
            snapshot_bytes=config.metadata_log_max_record_bytes_between_snapshots,
            snapshot_interval_ms=config.metadata_log_max_snapshot_interval_ms,
        )

    def _cluster_secret(self) -> str:
        path = self.config.cluster_secret_file
        return self.surroundings.load_cluster_secret(Path(path) if path else self._data_dir.path / "cluster-secret")

    def _find_account(self, username: str) -> Account | None:
        credential = self.image.credential(username)
        return None if credential is None else account_of(credential)

    def _tenant_exists(self, tenant: str) -> bool:
        return self.image.tenant(tenant) is not None

    def _on_image_shown(self, old: MetadataImage, new: MetadataImage) -> None:
        """A revoked key and a deleted tenant lose their open connections with the image that says so."""
        is_fewer = old.credentials is not new.credentials or old.removed_tenants is not new.removed_tenants
        if is_fewer:
            self._doors.cut_off_unwelcome()
        if self._is_serving:
            self.groups.follow(old, new)

    def _serve(self) -> None:
        self._doors.open_for_clients()
        self.groups.start()
        self._tasks.keep_running(TelemetryWriter(self).run, "telemetry")
        self._tasks.keep_running(self.disk_floor.run, "disk floor")
        self._tasks.keep_running(self._upkeep.run_retention, "retention")
        self._tasks.keep_running(self._compactor.run, "compaction")
        self._tasks.keep_running(self._scrubber.run, "scrubbing")
        self._tasks.keep_running(self._upkeep.run_high_watermarks, "high watermark checkpoints")
        self._tasks.keep_running(self._upkeep.run_recovery_points, "recovery point checkpoints")
        self.surroundings.settle_memory()

    def _make_session(self, spec: ListenerSpec, stream: Stream) -> Session:
        return Session(self, spec, apis_of(spec), stream.peer)

    # --- stop

    async def _stop(self) -> None:
        if self._is_serving:
            await self._hand_over()
            log.info("stopping: %d connections get their answers, then all logs are flushed", self.connection_count)
        if self.has_joined:
            await self.groups.stop()
        await self._doors.close(STOP_GRACE_S)
        await self._tasks.stop()
        self.password_threads.shutdown(wait=False)
        if self.has_joined:
            await self.controller_loop.stop()
            await self.replication.stop()
            await self._close_logs()
        if hasattr(self, "peers"):
            await self.peers.close()
        self._data_dir.unlock()

    async def _hand_over(self) -> None:
        """Leaders move to other brokers, and the metadata to another voter, while clients are still served."""
        if self._failure is not None or not self._voters:
            return
        if self.config.controlled_shutdown_enable and len(self.image.brokers) > 1:
            await self.lifecycle.ask_to_stop()
        await self.metadata.resign()

    async def _close_logs(self) -> None:
        await self.metadata.stop()
        for local in list(self.partitions.all()):
            local.request_flush()
        await self.flush.drain()
        self.flush.close()
        if self._failure is None and self._is_serving:
            await self._upkeep.write_high_watermarks()
            await self._upkeep.write_recovery_points()
            await self.partitions.close_all()
            self._data_dir.write_clean_marker(self.lifecycle.epoch)
            log.info("stopped cleanly: everything is on disk")
