"""The shell of the quorum, between its core and a disk that takes its time, and with answers that it cannot read."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Any, cast
from uuid import UUID

import pytest

from broker_engine.clock import SystemClock
from broker_engine.errors import ErrorCode
from broker_engine.log.flush import FlushJob
from broker_engine.log.memory_files import MemoryFiles
from broker_engine.quorum import messages as m
from broker_engine.quorum import ready as r
from broker_engine.quorum.core import QuorumCore
from broker_engine.quorum.election_state import ElectionState, VoterKey
from broker_engine.quorum.log_index import LogIndex, LogPosition
from broker_engine.quorum.voter_set import Voter, VoterSet
from broker_engine.server.metadata_log import MetadataLog
from broker_engine.server.raft_node import RaftNode

A, B, C = (VoterKey(number, UUID(int=number)) for number in (1, 2, 3))
Answering = Callable[[m.FetchRequest], m.FetchAnswer]


class Others:
    """The other nodes; votes are not answered."""

    def __init__(self, answer: Answering) -> None:
        self._answer = answer
        self.fetch_count = 0

    async def ask(self, node_id: int, request: m.Request) -> m.Answer:
        if not isinstance(request, m.FetchRequest):
            await asyncio.Event().wait()
        assert isinstance(request, m.FetchRequest)
        await asyncio.sleep(0)
        self.fetch_count += 1
        return self._answer(request)


def node_with(others: Others, *, me: VoterKey, state: ElectionState | None, voters: tuple[VoterKey, ...]) -> RaftNode:
    files, clock = MemoryFiles(), SystemClock()
    core = QuorumCore(
        me=me,
        state=state,
        log=LogIndex(),
        voters=[(-1, VoterSet.of(map(Voter, voters)))] if voters else [],
        random_below=lambda _limit: 0,
        bootstrap_ids=(1, 2, 3),
    )
    return RaftNode(
        core, MetadataLog.open(files, clock), files=files, clock=clock, peers=cast(Any, others), on_failure=_raise
    )


def _raise(error: Exception) -> None:
    raise error


async def until(is_so: Callable[[], bool]) -> None:
    async with asyncio.timeout(10):
        while not is_so():  # noqa: ASYNC110 - nobody signals it: it is looked at from outside
            await asyncio.sleep(0.002)


async def test_a_log_is_cut_after_the_flush_of_a_segment_that_was_begun_meanwhile(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def answer(request: m.FetchRequest) -> m.FetchAnswer:
        if request.epoch == 5 and request.fetch_offset == 0:
            entries = tuple(r.Entry(5, offset, (b"\x00x",)) for offset in range(3))
            return m.FetchAnswer(request_id=request.request_id, epoch=5, leader_id=1, entries=entries)
        diverging = LogPosition(5, 1) if request.epoch == 6 and request.fetch_offset > 1 else None
        code = ErrorCode.FENCED_LEADER_EPOCH if request.epoch == 5 else ErrorCode.NONE
        return m.FetchAnswer(request_id=request.request_id, epoch=6, leader_id=3, error=code, diverging=diverging)

    gate, run = threading.Semaphore(0), FlushJob.run

    def run_when_let(job: FlushJob) -> None:
        gate.acquire()
        run(job)

    monkeypatch.setattr(FlushJob, "run", run_when_let)
    node = node_with(Others(answer), me=B, state=ElectionState(5, 1, None), voters=(A, B, C))
    node.start()
    await until(lambda: node.log.end_offset == 3)
    await node.roll()  # as a snapshot's maker does, while the flush is under way
    gate.release()
    await until(lambda: node.core.log.end_offset == 1)  # the core has decided to cut; the second flush is under way
    gate.release(100)
    await until(lambda: node.log.end_offset == 1)
    assert node.core.durable_end_offset == 1
    await node.stop()


async def test_an_answer_that_cannot_be_read_is_no_answer() -> None:
    def answer(request: m.FetchRequest) -> m.FetchAnswer:
        if others.fetch_count == 3:
            raise ValueError("9999 is not a valid ErrorCode")
        code = ErrorCode.NOT_LEADER_OR_FOLLOWER
        return m.FetchAnswer(request_id=request.request_id, epoch=0, leader_id=None, error=code)

    others = Others(answer)
    node = node_with(others, me=VoterKey(4, UUID(int=0)), state=None, voters=())
    node.start()
    await until(lambda: others.fetch_count > 5)
    await node.stop()
