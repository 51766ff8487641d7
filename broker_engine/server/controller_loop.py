"""What the controller does by itself, while it leads the metadata: it fences the dead, balances leaders, adds voters.

A broker whose session ended is fenced; so is one whose connection broke and whose port is refused, or answers as
another process: it is gone, and nobody need wait for a time-out. A new controller dials every registered broker at
once. It never fences itself: that it leads says that it lives.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from broker_engine.client.errors import ConnectionFailed
from broker_engine.errors import BrokerError, ErrorCode
from broker_engine.metadata.controller import balance_leaders, fence_broker
from broker_engine.metadata.liveness import Liveness
from broker_engine.metadata.parts import BrokerImage
from broker_engine.server.leader_recovery import LeaderRecovery
from broker_engine.server.supervisor import Supervisor
from broker_engine.wire.messages.internal_identify import IdentifyRequest, IdentifyResponse

if TYPE_CHECKING:
    from broker_engine.server.broker import Broker

log = logging.getLogger(__name__)

WATCH_LANE = "watch"
_TICK_S = 0.1
_WATCH_TIMEOUT_MS = 2_000


class ControllerLoop:
    def __init__(self, broker: Broker) -> None:
        self.liveness = Liveness(broker.config.broker_session_timeout_ms)
        self.recovery = LeaderRecovery(broker)
        self._broker = broker
        self._tasks = Supervisor()
        self._watched: dict[int, int] = {}
        """Broker id to the broker epoch whose process we hold a connection to, or are dialing."""
        self._is_running = False
        broker.peers.on_lost.append(self._on_lost)

    # --- on and off

    def on_leadership(self, is_leader: bool) -> None:
        """Told by the metadata driver."""
        if is_leader == self._is_running:
            return
        self._is_running = is_leader
        if is_leader:
            log.info("this node is the controller, in epoch %d", self._broker.known_leader[1])
            self.liveness.on_leadership(self._broker.image, self._now_ms())
            self._tasks = Supervisor()
            self._tasks.keep_running(self._watch_sessions, "broker sessions")
            self._tasks.keep_running(self._balance, "leader balance")
            self._tasks.keep_running(self.recovery.run, "leader recovery")
        else:
            log.info("this node is not the controller any more")
            self._watched.clear()
            self._tasks.cancel()

    async def stop(self) -> None:
        self._is_running = False
        await self._tasks.stop()

    # --- who lives

    async def _watch_sessions(self) -> None:
        looked_ms = self._now_ms()
        while True:
            self._watch_new_brokers()
            since_ms, looked_ms = looked_ms, self._now_ms()
            self._forgive_if_asleep(since_ms, looked_ms)
            for broker_id, epoch in self.liveness.expired(looked_ms):
                if broker_id != self._broker.node_id:
                    await self._fence(broker_id, epoch, "it was not heard of for a session")
            await asyncio.sleep(_TICK_S)

    def _forgive_if_asleep(self, since_ms: int, now_ms: int) -> None:
        """A controller that itself stood still cannot know who was silent: heartbeats may wait in its sockets."""
        asleep_ms = now_ms - since_ms
        if asleep_ms > self._broker.config.broker_session_timeout_ms // 2:
            log.warning("the controller stood still for %d ms: every broker gets another session", asleep_ms)
            self.liveness.on_leadership(self._broker.image, now_ms)

    def _watch_new_brokers(self) -> None:
        """A connection to each, only to hear of its end. The first one after leadership finds out who is dead."""
        for broker in list(self._broker.image.brokers.values()):
            if broker.id == self._broker.node_id or self._watched.get(broker.id) == broker.epoch:
                continue
            if not broker.is_fenced:
                self._watched[broker.id] = broker.epoch
                self._tasks.spawn(self._look_at(broker), f"look at broker {broker.id}")

    async def _look_at(self, broker: BrokerImage) -> None:
        request = IdentifyRequest(cluster_id=self._broker.cluster_id, node_id=self._broker.node_id)
        try:
            answer = await self._broker.peers.ask(
                broker.id, request, IdentifyResponse, lane=WATCH_LANE, timeout_ms=_WATCH_TIMEOUT_MS
            )
        except ConnectionFailed:
            # Refused has been told to _on_lost. Silent: its session decides, and the next look comes with the tick.
            self._watched.pop(broker.id, None)
            return
        if answer.error_code == ErrorCode.NONE and answer.incarnation_id != broker.incarnation_id:
            await self._fence(broker.id, broker.epoch, "another process answers at its address")

    def _on_lost(self, node_id: int, is_refused: bool) -> None:
        if not self._is_running:
            return
        epoch = self._watched.pop(node_id, None)
        broker = self._broker.image.brokers.get(node_id)
        if is_refused and broker is not None and not broker.is_fenced and epoch in (None, broker.epoch):
            self._tasks.spawn(self._fence(node_id, broker.epoch, "its port is refused"), f"fence {node_id}")

    async def _fence(self, broker_id: int, epoch: int, why: str) -> None:
        config = self._broker.config
        try:
            await self._broker.metadata.commit(lambda image: fence_broker(image, broker_id, epoch, config=config))
        except BrokerError as error:
            log.info("broker %d was not fenced: %s", broker_id, error)
            return
        self.liveness.forget(broker_id, epoch)
        log.warning("broker %d is fenced: %s", broker_id, why)

    # --- balance

    async def _balance(self) -> None:
        config = self._broker.config
        while config.auto_leader_rebalance_enable:
            await asyncio.sleep(config.leader_imbalance_check_interval_seconds)
            results = await self._broker.metadata.commit(
                lambda image: balance_leaders(image, config.leader_imbalance_per_broker_percentage, config=config)
            )
            if results:
                log.info("%d partitions are led by their preferred replica again", len(results))

    def _now_ms(self) -> int:
        return self._broker.clock.monotonic_ms()
