"""One broker: wires the parts, starts them in order, stops them so that nothing is lost.

Start: lock, meta, clean marker, metadata log (replayed, led), listeners bound, registration, logs opened, then serving.
Stop: no new connections, what was begun is answered, all logs flushed, checkpoints, the clean marker last.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from broker_engine.config import BrokerConfig, ConfigError, Endpoint
from broker_engine.errors import BrokerError, ErrorCode
from broker_engine.handlers import apis_of
from broker_engine.log.flush import FlushJob
from broker_engine.metadata.controller import (
    NewPartitions,
    NewTopic,
    account_of,
    create_on_first_use,
    create_partitions,
    create_topics,
    register_broker,
)
from broker_engine.metadata.image import MetadataImage
from broker_engine.metadata.parts import EndpointImage
from broker_engine.names import ROOT, Name
from broker_engine.net.stream import Listener, NetCounters, Stream
from broker_engine.net.tls import server_context
from broker_engine.security.accounts import Account, Accounts
from broker_engine.security.principal import Principal
from broker_engine.server.acceptor import Acceptor
from broker_engine.server.budget import ByteBudget
from broker_engine.server.checkpoints import LOG_STARTS, RECOVERY_POINTS, read_checkpoint
from broker_engine.server.compactor import Compactor
from broker_engine.server.connection import ConnectionTimeouts
from broker_engine.server.data_dir import DataDir, Meta
from broker_engine.server.directories import tidy
from broker_engine.server.disk_floor import DiskFloor
from broker_engine.server.fetch_sessions import FetchSessions
from broker_engine.server.flush import FlushManager, crowd_flush
from broker_engine.server.listeners import ListenerSpec, make_specs
from broker_engine.server.log_starts import LogStarts
from broker_engine.server.metadata_driver import MetadataDriver
from broker_engine.server.pacer import Pacer
from broker_engine.server.partitions import Partitions, SavedOffsets
from broker_engine.server.producer_ids import ProducerIds
from broker_engine.server.scrubber import Scrubber
from broker_engine.server.session import Session
from broker_engine.server.surroundings import Surroundings
from broker_engine.server.upkeep import Upkeep
from broker_engine.telemetry.usage import Usage
from broker_engine.telemetry.writer import TOPIC as TELEMETRY_TOPIC
from broker_engine.telemetry.writer import TOPIC_CONFIGS as TELEMETRY_CONFIGS
from broker_engine.telemetry.writer import TelemetryWriter

log = logging.getLogger(__name__)

FETCH_BYTES_MAX = 55 * 1024 * 1024
"""Kafka's fetch.max.bytes of the broker."""
IN_FLIGHT_BYTES_MAX = 512 * 1024 * 1024
STOP_GRACE_S = 10.0
PASSWORD_THREAD_COUNT = 2
_PAUSE_AFTER_ERROR_S = 1.0
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
        self._tasks: set[asyncio.Task[None]] = set()
        self._creating: set[Name] = set()
        self.password_threads = ThreadPoolExecutor(PASSWORD_THREAD_COUNT, thread_name_prefix="password")
        self._is_serving = False

    # --- what handlers ask for

    @property
    def image(self) -> MetadataImage:
        return self.metadata.image

    @property
    def broker_epoch(self) -> int:
        """One number per life of this process."""
        return self.image.brokers[self.node_id].epoch

    @property
    def connection_count(self) -> int:
        return self._acceptor.connection_count

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
            self._spawn(self._create(fresh), "create topics on first use")

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
        is_new = self._data_dir.is_new
        meta = self._data_dir.load_or_create_meta(self.node_id, self.randomness)
        self.cluster_id = meta.cluster_id
        is_clean = self._data_dir.take_clean_marker() is not None
        how = "first start" if is_new else "after a clean stop" if is_clean else _AFTER_CRASH
        log.info("node %d of cluster %s on %s: %s", self.node_id, meta.cluster_id, self._data_dir.path, how)
        self._make_parts(meta)
        await self.metadata.start()
        await asyncio.to_thread(tidy, self._data_dir.files, self.image, self.randomness)
        await self._register()
        await self._open_partitions()
        await self._ensure_telemetry_topic()
        self._serve()

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
        self.disk_floor = DiskFloor(self.config.log_dir_free_bytes_min, self._data_dir.store.space)
        self.disk_floor.look()
        self.producer_ids = ProducerIds(self.metadata, self.node_id)
        self.accounts = Accounts(self._cluster_secret(), self._find_account, self._tenant_exists)
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
        incarnation_id = self.randomness.uuid()
        endpoints = [
            self._endpoint_image(spec, listener) for spec, listener in self._listeners if not spec.is_controller
        ]
        await self.metadata.commit(
            lambda image: register_broker(
                image,
                broker_id=self.node_id,
                incarnation_id=incarnation_id,
                endpoints=endpoints,
                rack=self.config.broker_rack,
            )
        )

    def _endpoint_image(self, spec: ListenerSpec, listener: Listener) -> EndpointImage:
        host, port = listener.address
        if spec.advertised is not None:
            host, port = spec.advertised.host, spec.advertised.port
        return EndpointImage(spec.name, host, port, spec.protocol.value)

    async def _ensure_telemetry_topic(self) -> None:
        """`__telemetry` has a partition for every node number up to ours, each on the broker of its number."""
        topic = self.image.topic(TELEMETRY_TOPIC)
        if topic is None:
            # Numbers below ours that are no broker's get a partition here, and nobody writes to it.
            new = NewTopic(
                TELEMETRY_TOPIC,
                assignments=[(index, (self._telemetry_home(index),)) for index in range(self.node_id + 1)],
                configs=TELEMETRY_CONFIGS,
            )
            await self.metadata.commit(
                lambda image: create_topics(image, [new], config=self.config, new_id=self.randomness.uuid)
            )
        elif self.node_id not in topic.partitions:
            added = range(topic.partition_count, self.node_id + 1)
            more = NewPartitions(TELEMETRY_TOPIC, self.node_id + 1, [(self._telemetry_home(index),) for index in added])
            await self.metadata.commit(lambda image: create_partitions(image, [more]))

    def _telemetry_home(self, index: int) -> int:
        return index if index in self.image.brokers else self.node_id

    def _serve(self) -> None:
        self._acceptor = Acceptor(
            self._make_session,
            self.budget,
            self.clock,
            timeouts=ConnectionTimeouts(idle_ms=self.config.connections_max_idle_ms),
            connections_max=self.config.max_connections,
            connections_per_ip_max=self.config.max_connections_per_ip,
        )
        self._acceptor.start(self._listeners)
        self._is_serving = True
        for spec, listener in self._listeners:
            log.info("listening on %s", spec.describe(*listener.address))
        self._keep_running(TelemetryWriter(self).run, "telemetry")
        self._keep_running(self.disk_floor.run, "disk floor")
        self._keep_running(self._upkeep.run_retention, "retention")
        self._keep_running(self._compactor.run, "compaction")
        self._keep_running(self._scrubber.run, "scrubbing")
        self._keep_running(self._upkeep.run_high_watermarks, "high watermark checkpoints")
        self._keep_running(self._upkeep.run_recovery_points, "recovery point checkpoints")
        self.surroundings.settle_memory()

    def _make_session(self, spec: ListenerSpec, stream: Stream) -> Session:
        return Session(self, spec, apis_of(spec), stream.peer)

    def _keep_running(self, work: Callable[[], Coroutine[Any, Any, None]], name: str) -> None:
        self._spawn(_run_again_after_errors(work, name), name)

    def _spawn(self, work: Coroutine[Any, Any, None], name: str) -> None:
        task = asyncio.get_running_loop().create_task(work, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._on_task_done)

    def _on_task_done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("task '%s' ended", task.get_name(), exc_info=error)

    # --- stop

    async def _stop(self) -> None:
        if self._is_serving:
            log.info("stopping: %d connections get their answers, then all logs are flushed", self.connection_count)
            await self._acceptor.stop(STOP_GRACE_S)
        for _, listener in self._listeners:
            listener.close()
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
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


async def _run_again_after_errors(work: Callable[[], Coroutine[Any, Any, None]], name: str) -> None:
    """Upkeep goes on whatever happens once: the error is logged, and the next round may do better."""
    while True:
        try:
            await work()
            return
        except Exception:
            log.exception("%s failed and is started again", name)
            await asyncio.sleep(_PAUSE_AFTER_ERROR_S)
