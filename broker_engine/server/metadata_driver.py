"""Drives the metadata log: carries out what the quorum core says, durable before told, and shows each new image whole.

One task decides, writes, syncs and shows; whatever is asked for meanwhile is decided together and rides the next
sync. An image is shown after the logs of its new partitions are open, so that what a client can see it can also write
to.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar
from uuid import UUID

from broker_engine.clock import Clock
from broker_engine.errors import BrokerError, ErrorCode
from broker_engine.log.files import Files
from broker_engine.metadata.controller import Decision, bootstrap
from broker_engine.metadata.image import EMPTY_IMAGE, MetadataImage, ReplayError
from broker_engine.metadata.records import UnknownRecordError, decode_record, encode_record
from broker_engine.quorum.core import QuorumCore
from broker_engine.quorum.election_state import (
    ElectionStateError,
    VoterKey,
    decode_election_state,
    encode_election_state,
)
from broker_engine.quorum.log_index import LogIndex
from broker_engine.quorum.ready import Entry, Flushed, Propose, Ready, Resign, Start
from broker_engine.quorum.voter_set import INITIAL, Voter, VoterSet
from broker_engine.server.metadata_log import DIRECTORY, MetadataLog
from broker_engine.server.partitions import Partitions

log = logging.getLogger(__name__)

_QUORUM_STATE = f"{DIRECTORY}/quorum-state"

R = TypeVar("R")
Command = Callable[[MetadataImage], Decision[R]]


@dataclass(slots=True)
class _Waiting:
    command: Command[Any]
    done: asyncio.Future[tuple[Any, ...]]


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
    ) -> None:
        self.image: MetadataImage = EMPTY_IMAGE
        self._me = VoterKey(node_id, directory_id)
        self._files = files
        self._clock = clock
        self._partitions = partitions
        self._on_failure = on_failure
        self._on_shown = on_shown
        self._log: MetadataLog | None = None
        self._core: QuorumCore | None = None
        self._has_open_partitions = False
        self._waiting: list[_Waiting] = []
        self._wake = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Recover the log, lead it, replay it. BrokerError says why that cannot be."""
        try:
            await self._recover()
        except (ElectionStateError, UnknownRecordError, ReplayError) as error:
            raise BrokerError(ErrorCode.KAFKA_STORAGE_ERROR, f"the metadata log: {error}") from error
        self._task = asyncio.get_running_loop().create_task(self._run(), name="metadata driver")
        await self.commit(lambda image: bootstrap(image, voter_id=self._me.node_id, directory_id=self._me.directory_id))

    async def open_partitions(self) -> None:
        """From now on the image's partitions are served here."""
        self._has_open_partitions = True
        await self._partitions.open_missing(EMPTY_IMAGE, self.image)

    async def commit(self, command: Command[R]) -> tuple[R, ...]:
        """Decide, write, sync, show; then what the command answers. BrokerError where it refuses."""
        waiting = _Waiting(command, asyncio.get_running_loop().create_future())
        self._waiting.append(waiting)
        self._wake.set()
        return await waiting.done

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        if self._core is not None:
            self._core.step(Resign(), self._clock.monotonic_ms())
        if self._log is not None:
            self._log.close()

    async def _recover(self) -> None:
        self._log = opened = await asyncio.to_thread(MetadataLog.open, self._files, self._clock)
        has_state = self._files.exists(_QUORUM_STATE)
        self._core = core = QuorumCore(
            me=self._me,
            voters=[(INITIAL + 1, VoterSet((Voter(self._me),)))],
            state=decode_election_state(self._files.read_small(_QUORUM_STATE)) if has_state else None,
            log=LogIndex(epoch_starts=[(max(0, opened.latest_epoch), 0)], end_offset=opened.end_offset),
            random_below=lambda _limit: 0,
        )
        await self._carry_out(core.step(Start(), self._clock.monotonic_ms()))
        assert core.is_leader, "the only voter leads"
        self.image = await asyncio.to_thread(_replay, opened)
        if self.image.voters and self._me.directory_id not in [voter.directory_id for voter in self.image.voters]:
            raise BrokerError(ErrorCode.KAFKA_STORAGE_ERROR, "this directory is no voter of its own metadata log")
        log.info("leading the metadata log in epoch %d up to offset %d", core.epoch, opened.end_offset)

    async def _carry_out(self, ready: Ready) -> tuple[Entry, ...]:
        """Everything that a step asks for, in its order, and what follows from that; the entries that are committed."""
        assert self._core is not None
        assert self._log is not None
        written: list[Entry] = []
        while True:
            if ready.persist_state is not None:
                data = encode_election_state(ready.persist_state)
                await asyncio.to_thread(self._files.write_atomic, _QUORUM_STATE, data, is_durable=True)
            if not ready.append:
                return tuple(written)
            for entry in ready.append:
                self._log.append(entry)
            written += ready.append
            end_offset = await asyncio.to_thread(self._log.sync)
            ready = self._core.step(Flushed(end_offset), self._clock.monotonic_ms())

    async def _run(self) -> None:
        while True:
            await self._wake.wait()
            self._wake.clear()
            group, self._waiting = self._waiting, []
            try:
                await self._commit_group(group)
            except Exception as error:
                for waiting in group:
                    _settle_failed(waiting, BrokerError(ErrorCode.KAFKA_STORAGE_ERROR, "the metadata log failed"))
                self._on_failure(error)
                return

    async def _commit_group(self, group: list[_Waiting]) -> None:
        """Each command decides on what the ones before it wrote; one sync serves all."""
        written, entries = self.image, list[Entry]()
        decided: list[tuple[_Waiting, Decision[Any]]] = []
        for waiting in group:
            try:
                decision = waiting.command(written)
            except Exception as error:
                _settle_failed(waiting, error)
                continue
            decided.append((waiting, decision))
            if decision.records:
                entry = self._propose(decision)
                entries.append(entry)
                written = written.replay(decision.records, entry.base_offset)
        if entries:
            await self._show(await self._carry_out(Ready(append=tuple(entries))))
        for waiting, decision in decided:
            if not waiting.done.done():
                waiting.done.set_result(decision.results)

    def _propose(self, decision: Decision[Any]) -> Entry:
        assert self._core is not None
        values = tuple(encode_record(record) for record in decision.records)
        (entry,) = self._core.step(Propose(values), self._clock.monotonic_ms()).append
        return entry

    async def _show(self, committed: tuple[Entry, ...]) -> None:
        old = new = self.image
        for entry in committed:
            if not entry.is_control:
                new = new.replay(map(decode_record, entry.values), entry.base_offset)
        if self._has_open_partitions:
            await self._partitions.open_missing(old, new)
        self.image = new
        self._on_shown(old, new)
        if self._has_open_partitions:
            await self._partitions.retire_removed(old, new)


def _replay(opened: MetadataLog) -> MetadataImage:
    """In a thread: the image of everything in the log."""
    image = EMPTY_IMAGE
    for batch in opened.batches():
        if batch.records:
            image = image.replay(batch.records, batch.header.base_offset)
    return image


def _settle_failed(waiting: _Waiting, error: Exception) -> None:
    if not waiting.done.done():
        waiting.done.set_exception(error)
