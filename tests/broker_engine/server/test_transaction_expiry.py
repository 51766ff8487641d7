"""Transactional ids that nobody uses are removed, and none that came back into use meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from broker_engine.config.broker import BrokerConfig
from broker_engine.errors import ErrorCode
from broker_engine.server.shards import Loaded, Pair
from broker_engine.server.transaction_coordinator import TransactionCoordinator
from broker_engine.transactions.core import InitAsk
from broker_engine.transactions.records import transaction_record
from broker_engine.transactions.shard import TransactionShard
from broker_engine.transactions.states import TransactionState
from broker_engine.transactions.transaction import Transaction
from tests.broker_engine.log.harness import START_MS, ManualClock

IDS_IN_ONE_WRITE = 500
LAST = f"id-{IDS_IN_ONE_WRITE}"


class World:
    """A broker that coordinates one partition of ids, where a test says when a write is acknowledged."""

    def __init__(self) -> None:
        self.config = BrokerConfig()
        self.clock = ManualClock()
        self.coordinator = TransactionCoordinator(self)  # type: ignore[arg-type]
        self.coordinator._shards = self  # type: ignore[assignment]
        self.coordinator._markers = self  # type: ignore[assignment]
        self.shard = TransactionShard()
        self.loaded: Loaded[Any] = Loaded(0, None, 5, self.shard)  # type: ignore[arg-type]
        self.acks: list[Callable[[], None]] = []
        self.removed: set[bytes] = set()

    def fill(self) -> None:
        """One id more than is removed at once, all unused since long ago."""
        for number in range(IDS_IN_ONE_WRITE + 1):
            unused = Transaction(
                transactional_id=f"id-{number}",
                producer_id=number,
                producer_epoch=3,
                previous_producer_id=number,
                timeout_ms=1000,
                updated_ms=0,
            )
            self.shard.replay(*transaction_record(unused), START_MS)

    def is_current(self, loaded: object) -> bool:
        return True

    def find(self, transactional_id: str) -> Loaded[Any]:
        return self.loaded

    def send(self, *_: object) -> None:
        """Markers are on their way."""

    def write(
        self, loaded: object, records: Sequence[Pair], *, is_replayed: bool, on_settled: Callable[[ErrorCode], None]
    ) -> asyncio.Future[ErrorCode]:
        done = asyncio.get_running_loop().create_future()

        def ack() -> None:
            on_settled(ErrorCode.NONE)
            done.set_result(ErrorCode.NONE)

        self.removed |= {key for key, value in records if value is None}
        self.acks.append(ack)
        return done

    async def acked(self, asking: Any) -> Any:
        """What is answered once the write that follows is acknowledged."""
        written_count = len(self.acks)
        task = asyncio.create_task(asking)
        await self.until_written(written_count + 1)
        self.acks[written_count]()
        return await task

    async def until_written(self, count: int) -> None:
        async with asyncio.timeout(5):
            while len(self.acks) < count:  # noqa: ASYNC110 - it is other tasks that make it so
                await asyncio.sleep(0)


@pytest.mark.parametrize("is_ended", [False, True], ids=["open", "decided"])
async def test_an_id_that_comes_back_while_others_are_removed_stays(is_ended: bool) -> None:
    world = World()
    world.fill()
    expiry = asyncio.create_task(world.coordinator._remove_expired(world.loaded))
    await world.until_written(1)
    producer = (await world.acked(world.coordinator.init_producer_id(InitAsk(LAST, 60_000)))).producer
    await world.acked(world.coordinator.add_partitions(LAST, producer, [("orders", 0)]))
    if is_ended:
        await world.acked(world.coordinator.end(LAST, producer, is_commit=True))
    world.acks[0]()
    await expiry
    known = world.shard.find(LAST)
    assert known is not None
    assert known.state is (TransactionState.PREPARE_COMMIT if is_ended else TransactionState.ONGOING)
    assert len(world.removed) == IDS_IN_ONE_WRITE
    assert list(world.shard.transactions) == [LAST]


async def test_ids_that_stay_unused_all_go() -> None:
    world = World()
    world.fill()
    expiry = asyncio.create_task(world.coordinator._remove_expired(world.loaded))
    for number in range(2):
        await world.until_written(number + 1)
        world.acks[number]()
    await expiry
    assert not world.shard.transactions
