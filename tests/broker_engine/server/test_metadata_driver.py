"""The metadata log under its driver: durable before told, shown whole, grouped, the same after a restart."""

from __future__ import annotations

import asyncio
from uuid import UUID

import pytest

from broker_engine.clock import SystemClock, SystemRandomness
from broker_engine.config import BrokerConfig
from broker_engine.errors import BrokerError, ErrorCode
from broker_engine.log.files import MemoryFiles
from broker_engine.metadata.controller import NewTopic, create_topics, delete_topics, register_broker
from broker_engine.metadata.decision import Decision
from broker_engine.metadata.image import MetadataImage
from broker_engine.names import Name
from broker_engine.quorum.ready import Resign
from broker_engine.server.local_partition import LocalPartition
from broker_engine.server.metadata_driver import ALONE, MetadataDriver, QuorumOptions
from broker_engine.server.metadata_log import DIRECTORY
from broker_engine.server.partitions import Partitions
from broker_engine.server.saved_offsets import SavedOffsets

CONFIG = BrokerConfig.load({}, {})
NODE = 1


class World:
    """One node's driver on files that outlive it."""

    def __init__(self, files: MemoryFiles, options: QuorumOptions = ALONE) -> None:
        self.files = files
        self.failures: list[Exception] = []
        self.partitions = Partitions(
            node_id=NODE,
            files=files,
            clock=SystemClock(),
            randomness=SystemRandomness(),
            config=CONFIG,
            request_flush=_ignore,
            saved=SavedOffsets(),
        )
        self.driver = MetadataDriver(
            node_id=NODE,
            directory_id=UUID(int=7),
            files=files,
            clock=SystemClock(),
            partitions=self.partitions,
            on_failure=self.failures.append,
            options=options,
        )

    async def start(self) -> World:
        await self.driver.start()
        incarnation = SystemRandomness().uuid()
        await self.driver.commit(
            lambda image: register_broker(
                image,
                broker_id=NODE,
                incarnation_id=incarnation,
                endpoints=[],
                config=CONFIG,
                new_id=SystemRandomness().uuid,
            )
        )
        await self.driver.open_partitions()
        return self

    async def create(self, *names: str) -> list[int]:
        topics = [NewTopic(Name("", name), 1, 1) for name in names]
        results = await self.driver.commit(
            lambda image: create_topics(image, topics, config=CONFIG, new_id=SystemRandomness().uuid)
        )
        return [int(result.error_code) for result in results]

    def names(self) -> set[str]:
        names = (topic.name.name for topic in self.driver.image.topics.values())
        return {name for name in names if not name.startswith("__")}


def _ignore(local: LocalPartition) -> None:
    """Nobody waits for flushes here."""


@pytest.fixture
async def world() -> World:
    return await World(MemoryFiles()).start()


async def test_a_topic_that_is_shown_can_be_written(world: World) -> None:
    assert await world.create("orders") == [0]
    topic = world.driver.image.topic(Name("", "orders"))
    assert topic is not None
    assert world.partitions.find(topic.id, 0) is not None


async def test_a_restart_sees_the_same_in_a_higher_epoch(world: World) -> None:
    await world.create("orders", "payments")
    before = world.driver.image
    await world.driver.stop()
    again = await World(world.files).start()
    assert again.names() == {"orders", "payments"}
    orders = before.topic(Name("", "orders"))
    now = again.driver.image.topic(Name("", "orders"))
    assert orders is not None
    assert now is not None
    assert now.id == orders.id
    assert now.partitions[0].leader_epoch == orders.partitions[0].leader_epoch + 1
    assert again.driver.image.brokers[NODE].epoch > before.brokers[NODE].epoch


async def test_an_image_stands_after_the_change_of_leader_as_one_from_a_snapshot_would(world: World) -> None:
    """Nodes compare where they are. Found by simulation, seed 901277."""
    await world.driver.stop()
    again = World(world.files)
    await again.driver.start()
    assert again.driver.image.next_offset == again.driver.applied_offset == again.driver.node.log.end_offset


async def test_what_was_answered_survives_a_power_failure(world: World) -> None:
    await world.create("orders")
    world.files.crash()
    again = await World(world.files).start()
    assert again.names() == {"orders"}


def metadata_segment(files: MemoryFiles) -> str:
    [name] = [name for name in files.list_dir(DIRECTORY) if name.endswith(".log")]
    return f"{DIRECTORY}/{name}"


async def test_damage_in_the_middle_stops_the_node_and_changes_nothing(world: World) -> None:
    await world.create("orders")
    await world.create("payments")
    await world.driver.stop()
    path = metadata_segment(world.files)
    rotten = bytearray(world.files.read_small(path))
    rotten[len(rotten) // 2] ^= 0x10
    world.files.write_atomic(path, bytes(rotten), is_durable=True)
    with pytest.raises(BrokerError, match=r"damaged.*restore the data directory"):
        await World(world.files).start()
    assert world.files.read_small(path) == rotten


async def test_a_metadata_log_that_lost_its_end_stops_the_node(world: World) -> None:
    await world.create("orders")
    await world.driver.stop()
    path = metadata_segment(world.files)
    whole = world.files.read_small(path)
    world.files.write_atomic(path, whole[: len(whole) // 2], is_durable=True)
    with pytest.raises(BrokerError, match="damaged"):
        await World(world.files).start()


async def test_commands_that_come_together_see_each_other(world: World) -> None:
    answers = await asyncio.gather(*(world.create("same") for _ in range(10)))
    assert sorted(answers) == [[0], *[[36]] * 9]


async def test_a_refusal_harms_nobody_else(world: World) -> None:
    def refuse(image: MetadataImage) -> Decision[None]:
        raise ValueError("no")

    refused, created = await asyncio.gather(world.driver.commit(refuse), world.create("orders"), return_exceptions=True)
    assert isinstance(refused, ValueError)
    assert created == [0]
    assert world.failures == []


async def test_a_deleted_topics_log_is_gone(world: World) -> None:
    await world.create("orders")
    await world.driver.commit(
        lambda image: delete_topics(image, [Name("", "orders")], viewer_tenant="", is_root=True, config=CONFIG)
    )
    assert world.names() == set()
    assert not [local for local in world.partitions.all() if not local.name.name.startswith("__")]
    assert not world.files.exists("orders-0")


async def test_nothing_is_shown_or_told_when_the_disk_fails(world: World) -> None:
    world.files.fail_next_sync = True
    with pytest.raises(BrokerError):
        await world.create("orders")
    assert world.names() == set()
    assert len(world.failures) == 1


async def test_who_does_not_lead_any_more_takes_no_commands(world: World) -> None:
    told: list[bool] = []
    world.driver.on_leadership = told.append
    await world.driver.node.step(Resign())
    with pytest.raises(BrokerError) as caught:
        await world.create("orders")
    assert caught.value.code is ErrorCode.NOT_CONTROLLER
    assert (told, world.driver.is_leader, world.driver.leader_id) == ([False], False, None)


async def test_a_command_that_was_not_committed_in_time_is_not_answered_as_done(world: World) -> None:
    def resign_first(image: MetadataImage) -> Decision[None]:
        world.driver.node.post(Resign())
        return create_topics(image, [], config=CONFIG, new_id=SystemRandomness().uuid)  # type: ignore[return-value]

    waiting = asyncio.gather(world.driver.commit(resign_first), world.create("orders"), return_exceptions=True)
    _, outcome = await waiting
    assert isinstance(outcome, BrokerError)
    assert outcome.code is ErrorCode.NOT_CONTROLLER


async def test_a_snapshot_is_made_after_so_many_bytes_and_a_restart_begins_with_it() -> None:
    files = MemoryFiles()
    options = QuorumOptions(snapshot_bytes=200)
    world = await World(files, options).start()
    for number in range(12):
        await world.create(f"topic-{number}")
    names, offset = world.names(), world.driver.applied_offset
    await world.driver.stop()
    kept = [name for name in files.list_dir(DIRECTORY) if name.endswith(".checkpoint")]
    assert len(kept) >= 2
    again = World(files, options)
    await again.driver.start()
    assert again.names() == names
    assert again.driver.applied_offset > offset
    assert again.driver.node.core.log.start_offset > 0
