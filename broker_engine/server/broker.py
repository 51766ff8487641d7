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

from broker_engine.config import BrokerConfig, ConfigError, Endpoint
from broker_engine.errors import BrokerError, ErrorCode
from broker_engine.handlers import apis_of
from broker_engine.handlers.api import Call
from broker_engine.log.flush import FlushJob
from broker_engine.metadata.controller import (
    account_of,
    create_on_first_use,
    register_broker,
)
from broker_engine.metadata.image import EMPTY_IMAGE, MetadataImage
from broker_engine.metadata.parts import EndpointImage
from broker_engine.names import ROOT, Name
from broker_engine.net.stream import Listener, NetCounters, Stream
from broker_engine.net.tls import client_context, server_context
from broker_engine.security.accounts import Account, Accounts
from broker_engine.security.principal import BROKER_NAME, Principal, internal
from broker_engine.server.acceptor import Acceptor
from broker_engine.server.budget import ByteBudget
from broker_engine.server.checkpoints import LOG_STARTS, RECOVERY_POINTS, read_checkpoint
from broker_engine.server.compactor import Compactor
from broker_engine.server.connection import ConnectionTimeouts
from broker_engine.server.controller_channel import ControllerChannel
from broker_engine.server.data_dir import DataDir, Meta, id_text
from broker_engine.server.directories import tidy
from broker_engine.server.disk_floor import DiskFloor
from broker_engine.server.fetch_sessions import FetchSessions
from broker_engine.server.flush import FlushManager, crowd_flush
from broker_engine.server.formation import Formation, Identity
from broker_engine.server.listeners import ListenerSpec, local_spec, make_specs, parse_voters
from broker_engine.server.log_starts import LogStarts
from broker_engine.server.metadata_driver import MetadataDriver
from broker_engine.server.metadata_log import DIRECTORY as METADATA_DIRECTORY
from broker_engine.server.pacer import Pacer
from broker_engine.server.partitions import Partitions, SavedOffsets
from broker_engine.server.peers import Peers
from broker_engine.server.producer_ids import ProducerIds
from broker_engine.server.scrubber import Scrubber
from broker_engine.server.session import Session
from broker_engine.server.supervisor import Supervisor
from broker_engine.server.surroundings import Surroundings
from broker_engine.server.telemetry_topic import ensure_telemetry_topic
from broker_engine.server.upkeep import Upkeep
from broker_engine.telemetry.usage import Usage
from broker_engine.telemetry.writer import TelemetryWriter

log = logging.getLogger(__name__)

FETCH_BYTES_MAX = 55 * 1024 * 1024
"""Kafka's fetch.max.bytes of the broker."""
IN_FLIGHT_BYTES_MAX = 512 * 1024 * 1024
STOP_GRACE_S = 10.0
PASSWORD_THREAD_COUNT = 2
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
        self.specs = make_specs(config)
        self._data_dir = DataDir(data_dir, self.surroundings.open_store)
        self._listeners: list[tuple[ListenerSpec, Listener]] = []
        self._stop_requested = asyncio.Event()
        self._failure: Exception | None = None
        self._tasks = Supervisor()
        self._voters = parse_voters(config.controller_quorum_voters)
        self._creating: set[Name] = set()
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
        return self.image.brokers[self.node_id].epoch

    @property
    def connection_count(self) -> int:
        return self._acceptor.connection_count

    @property
    def known_leader(self) -> tuple[int | None, int]:
        """Who leads the metadata, and in which epoch, as far as this node knows."""
        if not self.has_joined:
            return None, -1
        return getattr(self.metadata, "leader_id", self.node_id), getattr(self.metadata, "epoch", 0)

    def cluster_id_for(self, principal: Principal) -> str:
        """Root sees the real one; a tenant the id of a cluster of its own."""
        if principal.tenant == ROOT:
            return self.cluster_id
        tenant = self.image.tenant(principal.tenant)
        return f"lkc-{principal.tenant}" if tenant is None else tenant.cluster_id

    def nodes_for(self, listener: ListenerSpec) -> list[Node]:
        """Every live broker, by the address that leads back to the same kind of listener."""
        nodes = []
        for broker in self.image.brokers.values():
            for endpoint in broker.endpoints:
                if endpoint.name == listener.name and not broker.is_fenced:
                    nodes.append(Node(broker.id, endpoint.host, endpoint.port, broker.rack))
        return nodes

    def create_on_first_use(self, names: list[Name], principal: Principal) -> None:
        """In the background: the client is told that the topic is not there yet, and asks again."""
        fresh = [name for name in names if name not in self._creating]
        if fresh and self.config.auto_create_topics_enable:
            self._creating.update(fresh)
            self._tasks.spawn(self._create(fresh), "create topics on first use")

    async def _create(self, names: list[Name]) -> None:
        try:
            results = await self.metadata.commit(
                lambda image: create_on_first_use(image, names, config=self.config, new_id=self.randomness.uuid)
            )
        finally:
            self._creating.difference_update(names)
        for result in results:
            if result.error_code is ErrorCode.NONE:
                log.info("%s was created on first use", result.name)
            else:
                log.info("%s was not created on first use: %s", result.name, result.error_message)

    # --- life

    def request_stop(self) -> None:
        self._stop_requested.set()

    def bound_endpoints(self) -> list[Endpoint]:
        return [Endpoint(spec.name, *listener.address) for spec, listener in self._listeners]

    async def run(self, on_ready: Callable[[Broker], None]) -> None:
        """From start to stop. BrokerFailed and ConfigError say why it cannot go on."""
        try:
            await self._start()
            on_ready(self)
            await self._stop_requested.wait()
        except BrokerError as error:
            raise BrokerFailed(error.message or str(error)) from error
        finally:
            await self._stop()
        if self._failure is not None:
            raise BrokerFailed(f"stopped: {self._failure}")

    def fail(self, error: Exception) -> None:
        """The disk is gone, or the metadata cannot be followed: stop, and do not call it clean."""
        log.critical("the broker cannot go on: %s", error)
        self._failure = self._failure or error
        self.request_stop()

    async def _start(self) -> None:
        self._data_dir.lock()
        self._bind()
        self._accept_nodes()
        meta = await self._join()
        previous_epoch = self._data_dir.take_clean_marker()
        is_new = not self._data_dir.files.exists(METADATA_DIRECTORY)
        how = "first start" if is_new else _AFTER_CRASH if previous_epoch is None else "after a clean stop"
        log.info("node %d of cluster %s on %s: %s", self.node_id, meta.cluster_id, self._data_dir.path, how)
        self._make_parts(meta)
        await self.metadata.start()
        await asyncio.to_thread(tidy, self._data_dir.files, self.image, self.randomness)
        await self._register()
        await self._open_partitions()
        await ensure_telemetry_topic(self.metadata, self.node_id, self.config, self.randomness)
        self._serve()

    def _accept_nodes(self) -> None:
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
        self._acceptor = Acceptor(
            self._make_session,
            self.budget,
            self.clock,
            timeouts=ConnectionTimeouts(idle_ms=self.config.connections_max_idle_ms),
            connections_max=self.config.max_connections,
            connections_per_ip_max=self.config.max_connections_per_ip,
        )
        self._start_listeners(is_controller=True)

    def _start_listeners(self, *, is_controller: bool) -> None:
        chosen = [(spec, listener) for spec, listener in self._listeners if spec.is_controller is is_controller]
        self._acceptor.start(chosen)
        for spec, listener in chosen:
            log.info("listening on %s", spec.describe(*listener.address))

    async def _join(self) -> Meta:
        """Whose directory this is; a blank one becomes part of a cluster here."""
        meta = self._data_dir.load_meta(self.node_id)
        if meta is not None:
            return meta
        formation = Formation(self.identity, tuple(self._voters), self.peers, self.clock)
        found = await formation.find_cluster()
        cluster_id = id_text(self.randomness.uuid()) if found is None else found
        meta = Meta(cluster_id, self.node_id, self.identity.directory_id, is_founder=found is None)
        self._data_dir.write_meta(meta)
        self.identity = dataclasses.replace(self.identity, cluster_id=cluster_id)
        return meta

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
        saved = SavedOffsets(read_checkpoint(files, RECOVERY_POINTS), read_checkpoint(files, LOG_STARTS))
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
        )
        self.has_joined = True
        local = Session(self, local_spec(self.specs), apis_of(local_spec(self.specs)), "this node")
        self.controller = ControllerChannel(
            node_id=self.node_id,
            clock=self.clock,
            peers=self.peers,
            find_leader=lambda: self.known_leader[0],
            apis=local.apis,
            make_call=lambda version: Call(self, local, internal(BROKER_NAME), version, None),
        )
        self.disk_floor = DiskFloor(self.config.log_dir_free_bytes_min, self._data_dir.store.space)
        self.disk_floor.look()
        self.producer_ids = ProducerIds(self.metadata, self.node_id)
        self.log_starts = LogStarts(self.partitions, files)
        self._upkeep = Upkeep(self.partitions, self.log_starts, files, self.config, self.clock)
        self.partitions.after_removal = self._upkeep.write_recovery_points
        make_pacer = partial(Pacer, sleep=self.surroundings.sleep_in_thread)
        self._scrubber = Scrubber(self.partitions, make_pacer=make_pacer)
        backoff_ms = self.config.log_cleaner_backoff_ms
        self._compactor = Compactor(self.partitions, files, self.clock, backoff_ms=backoff_ms, make_pacer=make_pacer)

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
        if is_fewer and self._is_serving:
            self._acceptor.cut_off_unwelcome()

    def _bind(self) -> None:
        tls = None
        if self.config.ssl_certificate_file and self.config.ssl_key_file:
            tls = server_context(self.config.ssl_certificate_file, self.config.ssl_key_file)
        for spec in self.specs:
            endpoint = spec.endpoint
            try:
                listener = self.surroundings.listen(
                    endpoint.host or "0.0.0.0",  # noqa: S104 - what an empty host means
                    endpoint.port,
                    counters=self.counters,
                    tls=tls if spec.protocol.has_tls else None,
                    backlog=self.config.socket_listen_backlog_size,
                )
            except OSError as error:
                raise ConfigError(f"cannot listen on {endpoint}: {error.strerror}") from None
            self._listeners.append((spec, listener))

    async def _register(self) -> None:
        endpoints = [
            self._endpoint_image(spec, listener) for spec, listener in self._listeners if not spec.is_controller
        ]
        await self.metadata.commit(
            lambda image: register_broker(
                image,
                broker_id=self.node_id,
                incarnation_id=self.identity.incarnation_id,
                endpoints=endpoints,
                rack=self.config.broker_rack,
                config=self.config,
                new_id=self.randomness.uuid,
            )
        )

    def _endpoint_image(self, spec: ListenerSpec, listener: Listener) -> EndpointImage:
        host, port = listener.address
        if spec.advertised is not None:
            host, port = spec.advertised.host, spec.advertised.port
        return EndpointImage(spec.name, host, port, spec.protocol.value)

    def _serve(self) -> None:
        self._start_listeners(is_controller=False)
        self._is_serving = True
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
            log.info("stopping: %d connections get their answers, then all logs are flushed", self.connection_count)
            await self._acceptor.stop(STOP_GRACE_S)
        for _, listener in self._listeners:
            listener.close()
        await self._tasks.stop()
        self.password_threads.shutdown(wait=False)
        if hasattr(self, "metadata"):
            await self._close_logs()
        self._data_dir.unlock()

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
            self._data_dir.write_clean_marker(self.broker_epoch)
            log.info("stopped cleanly: everything is on disk")
