"""Files of removed segments on a broker: they wait by the topic's config, but not while the disk needs the room."""

from __future__ import annotations

import asyncio
from collections import Counter

import pytest

from broker_engine.log.memory_files import MemoryFiles
from broker_engine.server.checkpoints import HIGH_WATERMARKS
from broker_engine.server.log_starts import LogStarts
from broker_engine.server.upkeep import Upkeep
from tests.broker_engine.server.replicas import Cluster, Node, led_by

FOLDER = "orders-0"


class Upkept:
    """One broker's replica of three sealed segments, the first two of them too old."""

    def __init__(self, node: Node) -> None:
        self.node = node
        self.is_disk_low = False
        log_starts = LogStarts(node.partitions, node.files)
        self.upkeep = Upkeep(
            node.partitions, log_starts, node.files, node.config, node.clock, is_disk_low=lambda: self.is_disk_low
        )

    def names(self) -> list[str]:
        return [name for name in self.node.files.list_dir(FOLDER) if name.endswith((".log", ".log.deleted"))]

    async def apply_retention(self) -> None:
        for value in (b"one", b"two"):
            await self.node.append(value)
            self.node.local.log.roll()
        await self.upkeep.apply_retention()


async def upkept(delay_ms: int) -> tuple[Cluster, Upkept]:
    cluster = Cluster(topic={"retention.bytes": "1", "file.delete.delay.ms": str(delay_ms)})
    await cluster.start(1, state=led_by(1, (1,)))
    return cluster, Upkept(cluster.nodes[1])


def names(*bases: int, suffix: str = ".log") -> list[str]:
    return [f"{base:020d}{suffix}" for base in bases]


async def test_files_wait_for_the_topics_delay_and_the_log_starts_later_at_once() -> None:
    cluster, kept = await upkept(delay_ms=60_000)
    await kept.apply_retention()
    assert kept.names() == [*names(0, 1, suffix=".log.deleted"), *names(2)]
    assert kept.node.local.core.log_start_offset == 2, "readers and followers are told at once"
    await kept.upkeep.remove_files()
    assert kept.names() == [*names(0, 1, suffix=".log.deleted"), *names(2)]
    await cluster.stop()


async def test_without_a_delay_they_are_gone() -> None:
    cluster, kept = await upkept(delay_ms=0)
    await kept.apply_retention()
    assert kept.names() == names(2)
    await cluster.stop()


@pytest.mark.parametrize("is_low_before", [True, False])
async def test_a_disk_that_is_nearly_full_gets_its_room_back_at_once(*, is_low_before: bool) -> None:
    cluster, kept = await upkept(delay_ms=1 << 60)
    kept.is_disk_low = is_low_before
    await kept.apply_retention()
    if not is_low_before:
        kept.is_disk_low = True
        await kept.upkeep.remove_files()
    assert kept.names() == names(2)
    await cluster.stop()


async def test_a_restart_removes_what_waited() -> None:
    cluster, kept = await upkept(delay_ms=60_000)
    await kept.apply_retention()
    again = Upkept(await cluster.restart(1))
    assert again.names() == names(2)
    assert again.node.local.log.log_end_offset == 2
    await cluster.stop()


async def test_a_file_that_cannot_be_removed_does_not_keep_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster, kept = await upkept(delay_ms=60_000)
    await kept.apply_retention()
    unlink = MemoryFiles.unlink

    def stubborn(files: MemoryFiles, path: str) -> None:
        if path.endswith(f"{names(0)[0]}.deleted"):
            raise OSError(5, "input/output error")
        unlink(files, path)

    monkeypatch.setattr(MemoryFiles, "unlink", stubborn)
    kept.is_disk_low = True
    await kept.upkeep.remove_files()
    assert kept.names() == [*names(0, suffix=".log.deleted"), *names(2)]
    monkeypatch.undo()
    await cluster.stop()


async def test_a_checkpoint_for_which_there_is_no_room_is_written_when_there_is(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster = Cluster(settings={"replica.high.watermark.checkpoint.interval.ms": "5"})
    await cluster.start(1, state=led_by(1, (1,)))
    node = cluster.nodes[1]
    node.files.no_space = True
    tries = Counter[str]()
    write = MemoryFiles.write_atomic

    def counted(files: MemoryFiles, path: str, data: bytes, *, is_durable: bool) -> None:
        tries[path] += 1
        write(files, path, data, is_durable=is_durable)

    monkeypatch.setattr(MemoryFiles, "write_atomic", counted)
    rounds = asyncio.ensure_future(node.upkeep.run_high_watermarks())
    await cluster.until(lambda: tries[HIGH_WATERMARKS] > 3)
    assert not node.files.exists(HIGH_WATERMARKS)
    assert caplog.text.count("a checkpoint was not written") == 1, "not with each try"
    node.files.no_space = False
    await cluster.until(lambda: node.files.exists(HIGH_WATERMARKS))
    rounds.cancel()
    await cluster.stop()
