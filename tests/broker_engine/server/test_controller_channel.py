"""The controller is found wherever it is, and again when it has moved."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from broker_engine.client.errors import ConnectionFailed
from broker_engine.clock import SystemClock
from broker_engine.errors import BrokerError, ErrorCode
from broker_engine.handlers.api import Api, Scope
from broker_engine.server.controller_channel import ControllerChannel
from broker_engine.wire.messages.broker_heartbeat import BrokerHeartbeatRequest, BrokerHeartbeatResponse

ME = 1


class Cluster:
    """Nodes that answer heartbeats as a test says; `leader` is whom this node believes in."""

    def __init__(self) -> None:
        self.leader: int | None = None
        self.real_leader = ME
        self.dead: list[int] = []
        self.silent: list[int] = []
        self.asked: list[int] = []
        self.patience_ms: list[int] = []
        self.was_asked = asyncio.Event()
        self.refusal = ErrorCode.NOT_CONTROLLER

    async def ask(self, node_id: int, *_: Any, timeout_ms: int = 0, **__: Any) -> BrokerHeartbeatResponse:
        self.asked.append(node_id)
        self.patience_ms.append(timeout_ms)
        self.was_asked.set()
        if node_id in self.silent:
            await asyncio.Event().wait()
        if node_id in self.dead:
            raise ConnectionFailed(f"node {node_id}", "refused")
        return await self.answer(node_id)

    async def answer(self, node_id: int) -> BrokerHeartbeatResponse:
        await asyncio.sleep(0)
        if node_id != self.real_leader:
            return BrokerHeartbeatResponse(error_code=self.refusal)
        return BrokerHeartbeatResponse(is_fenced=False)

    async def handle_here(self, request: BrokerHeartbeatRequest, call: Any) -> BrokerHeartbeatResponse:
        self.asked.append(ME)
        self.was_asked.set()
        if self.real_leader != ME:
            raise BrokerError(ErrorCode.NOT_CONTROLLER)
        return await self.answer(ME)

    def channel(self) -> ControllerChannel:
        api = Api(
            request=BrokerHeartbeatRequest,
            scope=Scope.BROKERS,
            handle=self.handle_here,
            refuse=lambda request, error: BrokerHeartbeatResponse(error_code=error.code),
        )
        return ControllerChannel(
            node_id=ME,
            clock=SystemClock(),
            peers=self,  # type: ignore[arg-type]
            find_leader=lambda: self.leader,
            apis={api.key: api},
            make_call=lambda version: None,  # type: ignore[arg-type,return-value]
        )


async def beat(cluster: Cluster, *, timeout_ms: int = 5_000) -> BrokerHeartbeatResponse:
    return await cluster.channel().ask(BrokerHeartbeatRequest(), BrokerHeartbeatResponse, timeout_ms=timeout_ms)


@pytest.mark.parametrize("leader", [ME, 2])
async def test_the_leader_answers_here_or_elsewhere(leader: int) -> None:
    cluster = Cluster()
    cluster.leader = cluster.real_leader = leader
    assert not (await beat(cluster)).is_fenced
    assert cluster.asked == [leader]


async def test_a_leader_that_appears_later_is_asked() -> None:
    cluster = Cluster()
    asking = asyncio.ensure_future(beat(cluster))
    await asyncio.sleep(0.05)
    cluster.leader = cluster.real_leader = 3
    assert not (await asking).is_fenced


@pytest.mark.parametrize("trouble", ["dead", "silent"])
async def test_a_leader_that_fell_is_left_for_the_next(trouble: str) -> None:
    cluster = Cluster()
    cluster.leader, cluster.real_leader = 2, 3
    getattr(cluster, trouble).append(2)
    asking = asyncio.ensure_future(beat(cluster))
    await cluster.was_asked.wait()
    cluster.leader = 3
    assert not (await asking).is_fenced


@pytest.mark.parametrize("refusal", [ErrorCode.NOT_CONTROLLER, ErrorCode.BROKER_NOT_AVAILABLE])
async def test_who_is_not_the_controller_is_not_believed(refusal: ErrorCode) -> None:
    """Nor who was, and has only just started again."""
    cluster = Cluster()
    cluster.refusal = refusal
    cluster.leader, cluster.real_leader = ME, 2
    asking = asyncio.ensure_future(beat(cluster))
    await cluster.was_asked.wait()
    cluster.leader = 2
    assert not (await asking).is_fenced


async def test_the_time_runs_out() -> None:
    cluster = Cluster()
    with pytest.raises(ConnectionFailed, match="no controller is known"):
        await beat(cluster, timeout_ms=30)
    cluster.leader = 2
    cluster.dead.append(2)
    with pytest.raises(ConnectionFailed, match="refused"):
        await beat(cluster, timeout_ms=30)


async def test_one_attempt_waits_no_longer_than_it_may() -> None:
    """A connection whose other end is gone unheard: a registration would wait for a minute (seed 200556)."""
    cluster = Cluster()
    cluster.leader = cluster.real_leader = 2
    asked = cluster.channel().ask(
        BrokerHeartbeatRequest(), BrokerHeartbeatResponse, timeout_ms=60_000, attempt_timeout_ms=900
    )
    await asked
    assert cluster.patience_ms == [900]
