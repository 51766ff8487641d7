"""One life of a broker, against a controller that answers as a test says."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Any
from uuid import uuid4

import pytest

from broker_engine.client.errors import ConnectionFailed
from broker_engine.config import BrokerConfig
from broker_engine.errors import BrokerError, ErrorCode
from broker_engine.metadata.parts import EndpointImage
from broker_engine.server.formation import Identity
from broker_engine.server.lifecycle import Lifecycle
from broker_engine.wire.messages.broker_heartbeat import BrokerHeartbeatRequest, BrokerHeartbeatResponse
from broker_engine.wire.messages.broker_registration import BrokerRegistrationResponse
from broker_engine.wire.schema import Message
from tests.broker_engine.net.test_sockets import until

IDENTITY = Identity(2, "cluster", uuid4(), uuid4())
ENDPOINTS = [EndpointImage("default", "127.0.0.1", 9092, "SASL_SSL")]


class HandClock:
    def __init__(self) -> None:
        self.ms = 0

    def now_ms(self) -> int:
        return self.ms

    def monotonic_ms(self) -> int:
        return self.ms


class Controller:
    """Gives its answers in turn, the last one for ever; None is silence."""

    def __init__(self, *answers: Message | None) -> None:
        self.answers = deque(answers)
        self.seen: list[Any] = []

    async def ask(self, message: Message, *_: Any, **__: Any) -> Message:
        await asyncio.sleep(0)
        self.seen.append(message)
        answer = self.answers.popleft() if len(self.answers) > 1 else self.answers[0]
        if answer is None:
            raise ConnectionFailed("the controller", "silent")
        return answer


class Life:
    def __init__(self, *answers: Message | None) -> None:
        settings = {"broker.heartbeat.interval.ms": "1", "broker.session.timeout.ms": "100", "node.id": "2"}
        self.clock = HandClock()
        self.controller = Controller(*answers)
        self.failures: list[Exception] = []
        self.it = Lifecycle(
            config=BrokerConfig.load(settings),
            clock=self.clock,
            controller=self.controller,  # type: ignore[arg-type]
            metadata_offset=lambda: 7,
            on_fatal=self.failures.append,
            wants_drain=lambda: self.is_disk_stalled,
            on_drained=lambda: self.drained_at.append(len(self.controller.seen)),
        )
        self.is_disk_stalled = False
        self.drained_at: list[int] = []

    async def run_until(self, done: asyncio.Event) -> None:
        running = asyncio.ensure_future(self.it.run())
        async with asyncio.timeout(5):
            await done.wait()
        running.cancel()


async def test_a_registration_says_who_comes_and_how_the_last_life_ended() -> None:
    life = Life(BrokerRegistrationResponse(broker_epoch=41))
    await life.it.register(IDENTITY, ENDPOINTS, ("host", 9095), 33)
    (request,) = life.controller.seen
    assert (request.broker_id, request.cluster_id, request.previous_broker_epoch) == (2, "cluster", 33)
    assert (request.log_dirs, request.listeners[0].security_protocol) == ([IDENTITY.directory_id], 3)
    assert life.it.epoch == 41


async def test_a_wrong_cluster_is_told_at_once() -> None:
    refusal = BrokerRegistrationResponse(error_code=ErrorCode.INCONSISTENT_CLUSTER_ID, error_message="another cluster")
    with pytest.raises(BrokerError, match="does not take this node: another cluster"):
        await Life(refusal).it.register(IDENTITY, ENDPOINTS, None, None)


async def test_the_session_of_the_former_life_is_waited_for() -> None:
    taken = BrokerRegistrationResponse(error_code=ErrorCode.DUPLICATE_BROKER_REGISTRATION)
    life = Life(taken, BrokerRegistrationResponse(broker_epoch=5))
    await life.it.register(IDENTITY, ENDPOINTS, None, None)
    assert life.it.epoch == 5


async def test_a_broker_asks_to_serve_until_it_may() -> None:
    fenced, free = BrokerHeartbeatResponse(is_fenced=True), BrokerHeartbeatResponse(is_fenced=False)
    life = Life(fenced, fenced, free)
    life.it.ask_to_serve()
    await life.run_until(life.it.is_unfenced)
    assert all(isinstance(beat, BrokerHeartbeatRequest) and not beat.want_fence for beat in life.controller.seen)
    assert life.controller.seen[0].current_metadata_offset == 7


async def test_silence_for_a_session_fences_and_an_answer_frees() -> None:
    free = BrokerHeartbeatResponse(is_fenced=False)
    life = Life(BrokerRegistrationResponse(broker_epoch=1), free)
    await life.it.register(IDENTITY, ENDPOINTS, None, None)
    assert life.it.is_self_fenced, "nobody has let it serve yet"
    life.it.ask_to_serve()
    await life.run_until(life.it.is_unfenced)
    life.clock.ms = 100
    assert not life.it.is_self_fenced
    life.clock.ms = 101
    assert life.it.is_self_fenced
    life.controller.answers = deque([free])
    running = asyncio.ensure_future(life.it.run())
    await until(lambda: not life.it.is_self_fenced)
    running.cancel()


async def test_a_broker_that_was_fenced_takes_nothing_until_it_may_serve_again() -> None:
    """What its image says of who leads may be from before: a disk that stands still keeps it from learning more."""
    fenced, free = BrokerHeartbeatResponse(is_fenced=True), BrokerHeartbeatResponse(is_fenced=False)
    life = Life(free, fenced)
    life.it.ask_to_serve()
    running = asyncio.ensure_future(life.it.run())
    await until(lambda: len(life.controller.seen) > 1 and life.it.is_self_fenced)
    life.controller.answers = deque([free])
    await until(lambda: not life.it.is_self_fenced)
    running.cancel()


async def test_a_broker_that_asks_to_be_drained_takes_nothing_until_it_serves_again() -> None:
    fenced, free = BrokerHeartbeatResponse(is_fenced=True), BrokerHeartbeatResponse(is_fenced=False)
    life = Life(free)
    life.it.ask_to_serve()
    await life.run_until(life.it.is_unfenced)
    life.is_disk_stalled, life.controller.answers = True, deque([fenced])
    running = asyncio.ensure_future(life.it.run())
    await until(lambda: life.it.is_self_fenced)
    assert life.controller.seen[-1].want_fence
    life.is_disk_stalled, life.controller.answers = False, deque([fenced, free])
    await until(life.it.is_unfenced.is_set)
    running.cancel()
    assert not life.controller.seen[-1].want_fence
    assert not life.it.is_self_fenced
    assert len(life.drained_at) == 1


async def test_a_process_that_was_replaced_stops() -> None:
    life = Life(BrokerHeartbeatResponse(error_code=ErrorCode.STALE_BROKER_EPOCH))
    await life.it.run()
    assert "another process has registered as node 2" in str(life.failures[0])


async def test_a_stop_waits_for_the_controllers_leave() -> None:
    wait, go = BrokerHeartbeatResponse(is_fenced=False), BrokerHeartbeatResponse(should_shut_down=True)
    life = Life(BrokerRegistrationResponse(broker_epoch=1))
    await life.it.register(IDENTITY, ENDPOINTS, None, None)
    life.controller.answers = deque([wait, wait, go])
    running = asyncio.ensure_future(life.it.run())
    await life.it.ask_to_stop()
    await running
    assert life.controller.seen[-1].want_shut_down
    assert not life.failures


async def test_a_stop_without_a_controller_does_not_wait_long() -> None:
    life = Life(BrokerRegistrationResponse(broker_epoch=1))
    await life.it.register(IDENTITY, ENDPOINTS, None, None)
    life.controller.answers = deque([None])
    life.clock.ms = 2_001
    running = asyncio.ensure_future(life.it.run())
    await life.it.ask_to_stop()
    await running
