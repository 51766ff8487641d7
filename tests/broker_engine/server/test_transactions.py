"""Transactions on replicas: who leads next knows what is open, what was aborted, and what was never so."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from broker_engine.errors import ErrorCode
from broker_engine.records.batch import parse_header
from broker_engine.records.builder import NewRecord, build_batch
from broker_engine.records.control import TxnMarker, marker_batch
from broker_engine.server.fetch_waiter import FetchWaiter
from broker_engine.server.local_partition import LocalPartition
from tests.broker_engine.server.one_replica import consume
from tests.broker_engine.server.replicas import Cluster, Node, led_by


@pytest_asyncio.fixture(params=["fsync", "page-cache"])
async def cluster(request: pytest.FixtureRequest) -> AsyncIterator[Cluster]:
    made = Cluster(topic={"ack.durability": request.param, "min.insync.replicas": "1"})
    await made.start(1, 2, 3, state=led_by(1, (1, 2, 3)))
    yield made
    await made.stop()


async def send(node: Node, producer_id: int, sequence: int, value: bytes, *, acks: int = -1) -> None:
    local = node.local
    batch = build_batch(
        [NewRecord(1000, None, value)],
        producer_id=producer_id,
        producer_epoch=0,
        base_sequence=sequence,
        is_transactional=True,
    )
    guard = local.core.producers.begin_verification(parse_header(batch), is_adding=False)
    appended = local.append(memoryview(batch), produce_version=11, acks=acks, guard=guard)
    if acks == -1:
        await acked(local, appended.end_offset)


async def end(node: Node, producer_id: int, *, is_commit: bool, is_acked: bool = True) -> None:
    marker = TxnMarker(is_commit, 0)
    end_offset = node.local.append_own(marker_batch(producer_id, 0, marker, 1000), marker)
    if is_acked:
        await acked(node.local, end_offset)


async def acked(local: LocalPartition, end_offset: int) -> None:
    done: asyncio.Future[ErrorCode] = asyncio.get_running_loop().create_future()
    local.when_acked(end_offset, done.set_result)
    assert await asyncio.wait_for(done, 10) is ErrorCode.NONE


def committed(node: Node) -> list[bytes | None]:
    local, position, found = node.local, 0, list[bytes | None]()
    while position < local.last_stable_offset:
        read = local.read(position, bytes_max=1 << 20, is_committed_only=True, at_least_one=True)
        aborted = local.aborted_in(read, position)
        data = b"".join(each.read() for each in read.ranges)
        read.release()
        records, position = consume(data, aborted, position)
        found += [record.value for record in records]
    return found


def aborted_on(node: Node) -> list[tuple[int, ...]]:
    log = node.local.log
    return [tuple(entry) for entry in log.aborted_transactions(0, log.log_end_offset)]


async def test_a_new_leader_knows_what_is_open_and_what_was_aborted(cluster: Cluster) -> None:
    leader = cluster.nodes[1]
    await send(leader, 1, 0, b"aborted")
    await send(leader, 2, 0, b"committed")
    await end(leader, 1, is_commit=False)
    await send(leader, 1, 1, b"open")
    await end(leader, 2, is_commit=True)
    assert committed(leader) == [b"committed"]
    assert aborted_on(leader) == aborted_on(cluster.nodes[2]) == aborted_on(cluster.nodes[3])
    await cluster.elect(2, (2, 3))
    new = cluster.nodes[2]
    await cluster.until(lambda: new.local.high_watermark == 5)
    assert new.local.last_stable_offset == 3
    assert committed(new) == [b"committed"]
    await end(new, 1, is_commit=False)
    assert (new.local.last_stable_offset, committed(new)) == (6, [b"committed"])


async def test_a_marker_that_only_the_dead_leader_had_is_cut_off_with_its_entry(cluster: Cluster) -> None:
    """The next leader's marker decides, and the old one's index follows."""
    leader = cluster.nodes[1]
    await send(leader, 1, 0, b"value")
    cluster.cut_links += [(1, 2), (1, 3)]
    await end(leader, 1, is_commit=False, is_acked=False)
    assert aborted_on(leader) == [(1, 0, 1, 2)]
    await cluster.elect(2, (2, 3), only=(2, 3))
    await end(cluster.nodes[2], 1, is_commit=True)
    cluster.cut_links.clear()
    await leader.show(cluster.image)
    await cluster.until(lambda: set(cluster.state.isr) == {1, 2, 3})
    assert aborted_on(leader) == []
    await cluster.elect(1, (1, 2, 3))
    await cluster.until(lambda: leader.local.knows_latest_offset)
    assert committed(leader) == [b"value"]


async def test_a_transaction_that_only_the_dead_leader_had_is_not_open_after_the_cut(cluster: Cluster) -> None:
    leader = cluster.nodes[1]
    await send(leader, 1, 0, b"value")
    await end(leader, 1, is_commit=True)
    cluster.cut_links += [(1, 2), (1, 3)]
    await send(leader, 2, 0, b"never acked", acks=1)
    await cluster.elect(2, (2, 3), only=(2, 3))
    cluster.cut_links.clear()
    await leader.show(cluster.image)
    await cluster.until(lambda: set(cluster.state.isr) == {1, 2, 3})
    assert not leader.local.core.producers.transactions
    assert leader.local.core.producers.find(2) is None


async def test_a_killed_replica_comes_back_with_its_open_transactions(cluster: Cluster) -> None:
    leader = cluster.nodes[1]
    await send(leader, 1, 0, b"aborted")
    await end(leader, 1, is_commit=False)
    await send(leader, 2, 0, b"open")
    await cluster.elect(2, (2, 3))
    old = await cluster.restart(1)
    await cluster.until(lambda: old.local.core.high_watermark == 3)
    assert (old.local.last_stable_offset, aborted_on(old)) == (2, [(1, 0, 1, 2)])
    assert old.local.core.producers.is_open(2, 0)


async def test_readers_of_committed_records_are_woken_when_the_last_stable_offset_moves(cluster: Cluster) -> None:
    """And by all that it lets go, not by the marker's few bytes."""
    leader, loop = cluster.nodes[1], asyncio.get_running_loop()
    plain = FetchWaiter([leader.local], 1, 30, loop)
    small = FetchWaiter([leader.local], 1, 30, loop, is_committed_only=True)
    large = FetchWaiter([leader.local], 1000, 30, loop, is_committed_only=True)
    await send(leader, 1, 0, b"v" * 1000)
    await asyncio.wait_for(plain.wait(), 10)
    assert not small.is_ready
    await end(leader, 1, is_commit=True)
    await asyncio.wait_for(small.wait(), 10)
    await asyncio.wait_for(large.wait(), 10)
    for waiter in (plain, small, large):
        waiter.close()
