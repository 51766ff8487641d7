"""One broker: its parts wired together, and what handlers ask of it. How they come up and go down is in `run.py`."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import NamedTuple

from broker_engine.config import BrokerConfig, Endpoint
from broker_engine.handlers import apis_of
from broker_engine.handlers.api import Call
from broker_engine.log.flush import FlushJob
from broker_engine.metadata.controller import account_of
from broker_engine.metadata.image import EMPTY_IMAGE, MetadataImage
from broker_engine.names import ROOT, Name
from broker_engine.net.stream import NetCounters, Stream
from broker_engine.net.tls import client_context
from broker_engine.security.accounts import Account, Accounts
from broker_engine.security.principal import BROKER_NAME, Principal, internal
from broker_engine.server.budget import ByteBudget
from broker_engine.server.checkpoints import HIGH_WATERMARKS, LOG_STARTS, RECOVERY_POINTS, read_checkpoint
from broker_engine.server.compactor import Compactor
from broker_engine.server.controller_channel import ControllerChannel
from broker_engine.server.controller_loop import ControllerLoop
from broker_engine.server.data_dir import DataDir, Meta
from broker_engine.server.departures import Departures
from broker_engine.server.disk_floor import DiskFloor
from broker_engine.server.doors import Doors
from broker_engine.server.fetch_positions import FetchPositions
from broker_engine.server.fetch_sessions import FetchSessions
from broker_engine.server.first_use import FirstUse
from broker_engine.server.flush import FlushManager, crowd_flush, flush_ring
from broker_engine.server.formation import Identity
from broker_engine.server.group_coordinator import GroupCoordinator
from broker_engine.server.lifecycle import Lifecycle
from broker_engine.server.listeners import ListenerSpec, local_spec, parse_voters
from broker_engine.server.log_starts import LogStarts
from broker_engine.server.mender import Mender
from broker_engine.server.metadata_driver import MetadataDriver
from broker_engine.server.pacer import Pacer
from broker_engine.server.partitions import Partitions
from broker_engine.server.peers import Peers
from broker_engine.server.producer_ids import ProducerIds
from broker_engine.server.quorum_options import quorum_options
from broker_engine.server.replica_sessions import ReplicaSessions
from broker_engine.server.replication import Replication
from broker_engine.server.run import BrokerFailed, run
from broker_engine.server.saved_offsets import SavedOffsets
from broker_engine.server.scrubber import Scrubber
from broker_engine.server.session import Session
from broker_engine.server.stalled_disk import StalledDisk, can_be_spared, turn_waiters_away
from broker_engine.server.supervisor import Supervisor
from broker_engine.server.surroundings import Surroundings
from broker_engine.server.transaction_coordinator import TransactionCoordinator
from broker_engine.server.upkeep import Upkeep
from broker_engine.telemetry.usage import Usage

log = logging.getLogger(__name__)

__all__ = ["Broker", "BrokerFailed", "Node"]

FETCH_BYTES_MAX = 55 * 1024 * 1024
"""Kafka's fetch.max.bytes of the broker."""
IN_FLIGHT_BYTES_MAX = 512 * 1024 * 1024
PASSWORD_THREAD_COUNT = 2


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
        self.fetch_positions = FetchPositions()
        self.replica_sessions = ReplicaSessions(self.randomness)
        self.departures = Departures()
        self.doors = Doors(config, self.surroundings, self.counters)
        self.data_dir = DataDir(data_dir, self.surroundings.open_store)
        self.stop_requested = asyncio.Event()
        self.failure: Exception | None = None
        self.has_failed = asyncio.Event()
        self.identity: Identity
        self.peers: Peers
        self.tasks = Supervisor()
        self.voters = parse_voters(config.controller_quorum_voters)
        self.password_threads = ThreadPoolExecutor(PASSWORD_THREAD_COUNT, thread_name_prefix="password")
        self.pattern_threads = ThreadPoolExecutor(1, thread_name_prefix="pattern")
        self.is_serving = False
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
        return bool(self.voters) and self.lifecycle.is_self_fenced

    @property
    def connection_count(self) -> int:
        return self.doors.connection_count

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
        """Every live broker, by the address that leads back to the same kind of listener; and those that have just
        left, for some seconds (departures.py).
        """
        nodes, now_ms = [], self.clock.monotonic_ms()
        for broker in self.image.brokers.values():
            is_listed = not broker.is_fenced or self.departures.is_recent(broker.id, now_ms)
            for endpoint in broker.endpoints:
                if endpoint.name == listener.name and is_listed:
                    nodes.append(Node(broker.id, endpoint.host, endpoint.port, broker.rack))
        return nodes

    def create_on_first_use(self, names: list[Name], principal: Principal) -> None:
        if self.config.auto_create_topics_enable:
            self.first_use.create(names)

    # --- life

    def request_stop(self) -> None:
        self.stop_requested.set()

    def bound_endpoints(self) -> list[Endpoint]:
        return self.doors.endpoints()

    async def run(self, on_ready: Callable[[Broker], None]) -> None:
        """From start to stop. BrokerFailed and ConfigError say why it cannot go on."""
        await run(self, on_ready)

    def fail(self, error: Exception) -> None:
        """The disk is gone, or the metadata cannot be followed: stop, and do not call it clean."""
        log.critical("the broker cannot go on: %s", error, exc_info=error)
        self.failure = self.failure or error
        self.has_failed.set()
        self.request_stop()

    def open_for_nodes(self) -> None:
        """Other nodes may ask who we are from the first moment on: nobody could form a cluster otherwise."""
        meta = self.data_dir.load_meta(self.node_id)
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
        self.doors.open_for_nodes(self._make_session, self.budget)

    def _find_controller_address(self, node_id: int) -> tuple[str, int] | None:
        """By --quorum; brokers that are not named there say at registration where they are, voters when added."""
        named = self.voters.get(node_id)
        if named is not None:
            return named.host, named.port
        broker = self.image.brokers.get(node_id)
        if broker is not None and broker.controller_endpoint is not None:
            return broker.controller_endpoint.host, broker.controller_endpoint.port
        return self.metadata.address_of_voter(node_id) if self.has_joined else None

    def make_parts(self, meta: Meta) -> None:
        """In the order in which they need each other."""
        self._make_logs(meta)
        self.has_joined = True
        self._make_ways_to_the_controller()
        self._make_upkeep()

    def _make_logs(self, meta: Meta) -> None:
        files = self.data_dir.files
        self.flush: FlushManager[FlushJob] = FlushManager(
            self.clock,
            self.fail,
            crowd=crowd_flush(files, self.config.log_flush_syncfs),
            ring=flush_ring(files, self.config.log_flush_io_uring),
        )
        self.stalled_disk = StalledDisk(self.clock, self.flush, lambda: can_be_spared(self.image, self.node_id))
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
            options=quorum_options(self.config, meta, self.voters),
            peers=self.peers,
            randomness=self.randomness,
        )

    def _make_ways_to_the_controller(self) -> None:
        spec = local_spec(self.doors.specs)
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
            wants_drain=lambda: self.stalled_disk.wants_drain,
            on_drained=lambda: turn_waiters_away(self.partitions.all()),
        )
        self.first_use = FirstUse(self.controller, self.tasks)
        self.groups = GroupCoordinator(self)
        self.transactions = TransactionCoordinator(self)
        self.producer_ids = ProducerIds(self.controller, self.node_id, lambda: self.broker_epoch)

    def _make_upkeep(self) -> None:
        files = self.data_dir.files
        self.disk_floor = DiskFloor(self.config.log_dir_free_bytes_min, self.data_dir.store.space)
        self.disk_floor.look()
        self.log_starts = LogStarts(self.partitions, files)
        self.upkeep = Upkeep(
            self.partitions,
            self.log_starts,
            files,
            self.config,
            self.clock,
            is_disk_low=lambda: self.disk_floor.is_low,
        )
        self.partitions.after_removal = self.upkeep.write_recovery_points
        make_pacer = partial(Pacer, sleep=self.surroundings.sleep_in_thread)
        self.scrubber = Scrubber(self.partitions, make_pacer=make_pacer)
        self.mender = Mender(
            self.node_id, self.partitions, self.peers, self.scrubber, lambda: self.image, tasks=self.tasks
        )
        self.scrubber.on_damaged = self.mender.note_damaged
        self.partitions.on_doubted = self.mender.doubt
        self.replication = Replication(
            config=self.config,
            clock=self.clock,
            partitions=self.partitions,
            peers=self.peers,
            controller=self.controller,
            broker_epoch=lambda: self.broker_epoch,
            lower_points=self.upkeep.write_recovery_points,
            on_corrupt=self.mender.on_corrupt,
        )
        self.compactor = Compactor(self.partitions, files, self.clock, self.config, make_pacer=make_pacer)

    def _cluster_secret(self) -> str:
        path = self.config.cluster_secret_file
        return self.surroundings.load_cluster_secret(Path(path) if path else self.data_dir.path / "cluster-secret")

    def _find_account(self, username: str) -> Account | None:
        credential = self.image.credential(username)
        return None if credential is None else account_of(credential)

    def _tenant_exists(self, tenant: str) -> bool:
        return self.image.tenant(tenant) is not None

    def _on_image_shown(self, old: MetadataImage, new: MetadataImage) -> None:
        """A revoked key and a deleted tenant lose their open connections with the image that says so."""
        self.departures.follow(old, new, self.clock.monotonic_ms())
        is_fewer = old.credentials is not new.credentials or old.removed_tenants is not new.removed_tenants
        if is_fewer:
            self.doors.cut_off_unwelcome()
        if self.is_serving:
            self.groups.follow(old, new)
            self.transactions.follow(old, new)

    def _make_session(self, spec: ListenerSpec, stream: Stream) -> Session:
        return Session(self, spec, apis_of(spec), stream.peer)
