"""From start to stop: in which order the parts of one broker come up, and how they go down so that nothing is lost.

Start: lock, listeners bound, open for other nodes, the cluster known, metadata followed, registered, logs opened,
unfenced, open for clients. Stop: leaders handed over, no new connections, what was begun is answered, all logs flushed,
checkpoints, the clean marker last.
"""

from __future__ import annotations

import asyncio
import dataclasses
import logging
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any

from broker_engine.errors import BrokerError
from broker_engine.server.directories import find_vanished, remove_leftovers, tidy
from broker_engine.server.formation import Formation
from broker_engine.server.metadata_log import DIRECTORY as METADATA_DIRECTORY
from broker_engine.server.partitions import CLEAN_OPEN_THREAD_COUNT
from broker_engine.server.reopening import Reopening
from broker_engine.telemetry.writer import TelemetryWriter

if TYPE_CHECKING:
    from broker_engine.server.broker import Broker
    from broker_engine.server.data_dir import DataDir

log = logging.getLogger(__name__)

STOP_GRACE_S = 10.0
VOTE_WAIT_S_MAX = 3.0
_NAMED_MAX = 10
_AFTER_CRASH = "the last stop was not clean, so logs are checked from their recovery points on"


class BrokerFailed(Exception):  # noqa: N818 - reads as what it is
    """The broker cannot go on; one line says why."""


async def run(broker: Broker, on_ready: Callable[[Broker], None]) -> None:
    """From start to stop. BrokerFailed and ConfigError say why it cannot go on."""
    with broker.surroundings.watch_loop():
        await _run(broker, on_ready)


async def _run(broker: Broker, on_ready: Callable[[Broker], None]) -> None:
    try:
        # A node may wait long for others: it can be stopped meanwhile.
        if await _unless(broker.stop_requested, _start(broker)):
            on_ready(broker)
            await broker.stop_requested.wait()
    except BrokerError as error:
        raise BrokerFailed(error.message or str(error)) from error
    finally:
        await _stop(broker)
    if broker.failure is not None:
        raise BrokerFailed(f"stopped: {broker.failure}")


async def _unless(event: asyncio.Event, work: Coroutine[Any, Any, None]) -> bool:
    """Does the work. False: the event came first, and it was given up."""
    working, coming = asyncio.ensure_future(work), asyncio.ensure_future(event.wait())
    await asyncio.wait([working, coming], return_when=asyncio.FIRST_COMPLETED)
    coming.cancel()
    if not working.done():
        working.cancel()
        await asyncio.gather(working, return_exceptions=True)
        return False
    working.result()
    return True


async def _start(broker: Broker) -> None:
    broker.data_dir.lock()
    broker.doors.bind()
    broker.open_for_nodes()
    formation = Formation(broker.identity, tuple(broker.voters), broker.peers, broker.clock)
    meta = await formation.join(broker.data_dir, broker.randomness)
    broker.identity = dataclasses.replace(broker.identity, cluster_id=meta.cluster_id)
    previous_epoch = _take_clean_marker(broker.data_dir)
    is_new = not broker.data_dir.files.exists(METADATA_DIRECTORY)
    how = "first start" if is_new else _AFTER_CRASH if previous_epoch is None else "after a clean stop"
    log.info("node %d of cluster %s on %s: %s", broker.node_id, meta.cluster_id, broker.data_dir.path, how)
    broker.make_parts(meta)
    await asyncio.to_thread(remove_leftovers, broker.data_dir.files)
    await broker.metadata.start()
    if broker.config.is_broker:
        await _become_broker(broker, previous_epoch)
    broker.is_serving = True
    await _wait_to_vote(broker)


def _take_clean_marker(data_dir: DataDir) -> int | None:
    """None too where something is missing of what a clean stop left: who lost records must not count as in sync."""
    previous_epoch = data_dir.take_clean_marker()
    vanished = find_vanished(data_dir.files) if previous_epoch is not None else []
    for path in vanished[:_NAMED_MAX]:
        log.error("the log in %s is gone since the last stop: other replicas give it back, if there are any", path)
    if vanished:
        log.error("%d partitions lost their logs: this start counts as one after a crash", len(vanished))
    return None if vanished else previous_epoch


async def _wait_to_vote(broker: Broker) -> None:
    """So that a new cluster whose nodes are all ready can lose one of them. Who is not named in the leader's
    `--quorum` stays an observer, and is ready after a while.
    """
    try:
        async with asyncio.timeout(VOTE_WAIT_S_MAX):
            while _is_to_vote(broker):
                await broker.metadata.node.news.wait()
    except TimeoutError:
        log.info("this node follows the metadata without a vote")


def _is_to_vote(broker: Broker) -> bool:
    is_voter = any(key.directory_id == broker.identity.directory_id for key in broker.metadata.voters.keys)
    return broker.config.is_controller and len(broker.voters) > 1 and not is_voter


async def _become_broker(broker: Broker, previous_epoch: int | None) -> None:
    """Registered, with open logs, unfenced, serving: in this order."""
    await broker.controller.wait_for_leader()
    controller_endpoint = broker.doors.controller_endpoint()
    await broker.lifecycle.register(
        broker.identity, broker.doors.client_endpoints(), controller_endpoint, previous_epoch
    )
    broker.tasks.keep_running(broker.lifecycle.run, "heartbeats")
    # Only now is the image sure to know everything that this directory may hold.
    await broker.metadata.wait_for_offset(broker.lifecycle.epoch + 1)
    await asyncio.to_thread(tidy, broker.data_dir.files, broker.image, broker.randomness)
    broker.replication.start()
    if previous_epoch is not None:
        broker.partitions.open_thread_count = CLEAN_OPEN_THREAD_COUNT
    await _open_partitions(broker)
    broker.lifecycle.ask_to_serve()
    await broker.lifecycle.is_unfenced.wait()
    _serve(broker)


async def _open_partitions(broker: Broker) -> None:
    started_ms = broker.clock.monotonic_ms()
    await broker.metadata.open_partitions()
    log.info("%d partitions opened in %d ms", len(broker.partitions), broker.clock.monotonic_ms() - started_ms)


def _serve(broker: Broker) -> None:
    broker.doors.open_for_clients()
    broker.groups.start()
    broker.transactions.start()
    telemetry = TelemetryWriter(broker)
    broker.tasks.keep_running(telemetry.run, "telemetry")
    broker.tasks.keep_running(telemetry.unread.run, "times of unread records")
    broker.tasks.keep_running(broker.disk_floor.run, "disk floor")
    broker.tasks.keep_running(Reopening(broker).run, "replicas that could not be opened")
    broker.tasks.keep_running(broker.stalled_disk.run, "watch over flushes")
    broker.tasks.keep_running(broker.upkeep.run_retention, "retention")
    broker.tasks.keep_running(broker.upkeep.run_removals, "removal of files")
    broker.tasks.keep_running(broker.compactor.run, "compaction")
    broker.tasks.keep_running(broker.scrubber.run, "scrubbing")
    broker.tasks.keep_running(broker.mender.run, "mending")
    broker.tasks.keep_running(broker.upkeep.run_high_watermarks, "high watermark checkpoints")
    broker.tasks.keep_running(broker.upkeep.run_recovery_points, "recovery point checkpoints")
    broker.surroundings.settle_memory()


# --- stop


async def _stop(broker: Broker) -> None:
    if broker.is_serving:
        # What fails meanwhile may be what has to answer: the metadata of a controller whose disk is full.
        if broker.failure is None and not await _unless(broker.has_failed, _hand_over(broker)):
            log.warning("nothing is handed over any more: others take it when this node is gone")
        log.info("stopping: %d connections get their answers, then all logs are flushed", broker.connection_count)
    if broker.has_joined:
        await broker.transactions.stop()
        await broker.groups.stop()
    await broker.doors.close(STOP_GRACE_S)
    await broker.tasks.stop()
    broker.password_threads.shutdown(wait=False)
    broker.pattern_threads.shutdown(wait=False, cancel_futures=True)
    if broker.has_joined:
        await broker.controller_loop.stop()
        await broker.replication.stop()
        await _close_logs(broker)
    if hasattr(broker, "peers"):
        await broker.peers.close()
    broker.data_dir.unlock()


async def _hand_over(broker: Broker) -> None:
    """Leaders move to other brokers, and the metadata to another voter, while clients are still served."""
    if not broker.voters:
        return
    if broker.config.controlled_shutdown_enable and len(broker.image.brokers) > 1:
        await broker.lifecycle.ask_to_stop()
    await broker.metadata.resign()


async def _close_logs(broker: Broker) -> None:
    await broker.metadata.stop()
    for local in list(broker.partitions.all()):
        local.request_flush()
    await broker.flush.drain()
    broker.flush.close()
    if broker.failure is None and broker.is_serving:
        await broker.upkeep.write_high_watermarks()
        await broker.upkeep.write_recovery_points()
        await broker.partitions.close_all()
        broker.data_dir.write_clean_marker(broker.lifecycle.epoch)
        log.info("stopped cleanly: everything is on disk")
