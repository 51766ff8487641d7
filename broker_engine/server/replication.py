"""This broker's part in replication: fetchers for what it follows, ISR changes for what it leads."""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import Callable

from broker_engine.clock import Clock
from broker_engine.config import BrokerConfig
from broker_engine.server.following import LowerPoints
from broker_engine.server.isr_proposals import Controller, IsrProposals
from broker_engine.server.local_partition import LocalPartition
from broker_engine.server.partitions import Partitions
from broker_engine.server.replica_fetcher import Asker, FetcherParts, ReplicaFetcher
from broker_engine.server.replication_throttle import RateLimit
from broker_engine.server.supervisor import Supervisor

_TICK_PART = 6
"""So many looks at the followers within the lag time."""
_TICK_MS_MIN, _TICK_MS_MAX = 10, 5_000
_PARTITIONS_PER_TURN = 500


class Replication:
    def __init__(
        self,
        *,
        config: BrokerConfig,
        clock: Clock,
        partitions: Partitions,
        peers: Asker,
        controller: Controller,
        broker_epoch: Callable[[], int],
        lower_points: LowerPoints,
        on_corrupt: Callable[[int, LocalPartition], None] = lambda leader_id, local: None,
    ) -> None:
        self._config = config
        self._clock = clock
        self._partitions = partitions
        self._tasks = Supervisor()
        self._parts = FetcherParts(
            node_id=config.node_id,
            broker_epoch=broker_epoch,
            peers=peers,
            clock=clock,
            config=config,
            lower_points=lower_points,
            cuts=Supervisor(),
            limit=self._limit("follower.replication.throttled.rate", config.follower_replication_throttled_rate),
            on_corrupt=on_corrupt,
        )
        self.serving_limit = self._limit("leader.replication.throttled.rate", config.leader_replication_throttled_rate)
        self._fetchers: dict[tuple[int, int], ReplicaFetcher] = {}
        self._fetcher_of: dict[LocalPartition, ReplicaFetcher] = {}
        self._is_stopped = False
        self._proposals = IsrProposals(config.node_id, controller, broker_epoch)
        partitions.on_role = self._on_role
        partitions.propose_isr = self._proposals.propose

    def _limit(self, name: str, default: int) -> RateLimit:
        return RateLimit(lambda: self._partitions.broker_setting(name, default), self._clock)

    def start(self) -> None:
        self._tasks.keep_running(self._proposals.run, "ISR proposals")
        self._tasks.keep_running(self._watch_followers, "followers' lag")

    async def stop(self) -> None:
        """No more is fetched; a cut that has begun is finished."""
        self._is_stopped = True
        await self._tasks.stop()
        await self._parts.cuts.join()

    def _on_role(self, local: LocalPartition) -> None:
        is_following = local.following is not None and local.leader_id >= 0 and not self._is_stopped
        wanted = self._fetcher(local) if is_following else None
        before = self._fetcher_of.pop(local, None)
        if before is not None and before is not wanted:
            before.unfollow(local)
        if wanted is not None:
            self._fetcher_of[local] = wanted
            wanted.follow(local)

    def _fetcher(self, local: LocalPartition) -> ReplicaFetcher:
        lane = zlib.crc32(local.topic_id.bytes + local.index.to_bytes(4, "big")) % self._config.num_replica_fetchers
        fetcher = self._fetchers.get((local.leader_id, lane))
        if fetcher is None:
            fetcher = ReplicaFetcher(local.leader_id, f"fetch-{lane}", self._parts)
            self._fetchers[local.leader_id, lane] = fetcher
            self._tasks.keep_running(fetcher.run, f"fetch from broker {local.leader_id}, lane {lane}")
        return fetcher

    async def _watch_followers(self) -> None:
        interval_ms = min(max(self._config.replica_lag_time_max_ms // _TICK_PART, _TICK_MS_MIN), _TICK_MS_MAX)
        while True:
            began_ms = self._clock.monotonic_ms()
            await asyncio.sleep(interval_ms / 1000)
            late_ms = self._clock.monotonic_ms() - began_ms - interval_ms
            await self._look_at_followers(stalled_ms=late_ms if late_ms > interval_ms else 0)

    async def _look_at_followers(self, *, stalled_ms: int) -> None:
        for number, local in enumerate(list(self._partitions.all())):
            if number % _PARTITIONS_PER_TURN == 0:
                await asyncio.sleep(0)
            core = local.leading
            if core is not None and len(core.replicas) > 1:
                local.perform(core.on_tick(self._clock.monotonic_ms(), stalled_ms=stalled_ms))
