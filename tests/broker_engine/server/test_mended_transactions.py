"""Transactions whose batches could not be read when a replica started: once mended, it knows how they stand."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any, cast

import pytest_asyncio

from broker_engine.errors import ErrorCode
from broker_engine.log.results import LogState
from broker_engine.records.builder import NewRecord, build_batch
from broker_engine.records.control import TxnMarker, marker_batch
from tests.broker_engine.server.replicas import Cluster, Node, led_by
from tests.broker_engine.server.test_mender import FOLLOWER, LEADER, mend, mender_of, rot

PRODUCER = 7
PRODUCER_ID_LAST_BYTE = 50
"""Of a batch."""
BEGIN = 1
"""Where the transaction begins."""


@pytest_asyncio.fixture
async def cluster() -> AsyncIterator[Cluster]:
    made = Cluster(topic={"min.insync.replicas": "2"})
    await made.start(LEADER, FOLLOWER, state=led_by(LEADER, (LEADER, FOLLOWER)))
    await made.nodes[LEADER].append(b"before it")
    yield made
    await made.stop()


async def send(cluster: Cluster) -> None:
    """A batch of the transaction, in a segment of its own."""
    record = NewRecord(1000, None, b"in the transaction")
    batch = build_batch([record], producer_id=PRODUCER, producer_epoch=0, base_sequence=0, is_transactional=True)
    await _append(cluster, batch)


async def end(cluster: Cluster, *, is_commit: bool) -> None:
    marker = TxnMarker(is_commit, 0)
    await _append(cluster, marker_batch(PRODUCER, 0, marker, 1000), marker)


async def _append(cluster: Cluster, batch: bytes, marker: TxnMarker | None = None) -> None:
    for node in cluster.nodes.values():
        node.local.log.roll()
    end_offset = cluster.nodes[cluster.state.leader].local.append_own(batch, marker)
    await cluster.until(lambda: all(node.local.high_watermark == end_offset for node in cluster.nodes.values()))


async def restart_with_rot(
    cluster: Cluster, node_id: int, base_offset: int, *, position: int = -1, is_found: bool = True
) -> Node:
    """Without any snapshot of what producers did: only the log tells, and of this segment it cannot. `is_found`: the
    scrubber came by in time.
    """
    for each in cluster.nodes.values():
        each.local.log.roll()
    await cluster.nodes[LEADER].append(b"behind it")
    mender_of(cluster, node_id)
    node: Any = cluster.nodes[node_id]
    rot(node, base_offset, position)
    await node.upkeep.write_recovery_points()
    if is_found:
        await node.scrubber.verify_all()
    for path in [path for path in node.files._files if path.endswith(".snapshot")]:
        node.files.unlink(path)
    node = await cluster.restart(node_id)
    assert (node.local.log.state is LogState.DAMAGED) == is_found
    return cast(Node, node)


def open_from(node: Node) -> int | None:
    return node.local.core.producers.transactions.first_offset_of(PRODUCER)


async def test_a_transaction_that_began_in_it_is_open(cluster: Cluster) -> None:
    await send(cluster)
    node = await restart_with_rot(cluster, FOLLOWER, BEGIN)
    assert open_from(node) is None
    assert await mend(cluster, node) is LogState.ONLINE
    assert (open_from(node), node.local.core.last_stable_offset) == (BEGIN, BEGIN)
    assert await cluster.nodes[LEADER].append(b"later") is ErrorCode.NONE, "it is followed as before"
    assert node.stored() == cluster.nodes[LEADER].stored()


async def test_a_transaction_that_ended_in_it_is_not_open(cluster: Cluster) -> None:
    await send(cluster)
    await end(cluster, is_commit=True)
    node = await restart_with_rot(cluster, FOLLOWER, BEGIN + 1)
    assert open_from(node) == BEGIN
    await mend(cluster, node)
    assert (open_from(node), node.local.core.last_stable_offset) == (None, node.local.high_watermark)


async def test_a_marker_that_rotted_unseen_is_not_believed(cluster: Cluster) -> None:
    """Else who wrote it might be said to come after all coordinators, and no transaction of the producer would end."""
    await send(cluster)
    await end(cluster, is_commit=True)
    node = await restart_with_rot(cluster, FOLLOWER, BEGIN + 1, is_found=False)
    assert node.local.core.last_stable_offset <= BEGIN + 1
    end_offset = node.local.log.log_end_offset
    await cluster.until(lambda: node.local.high_watermark == end_offset)
    mender = mender_of(cluster, FOLLOWER)
    mender.look_for_damage()
    await mender._look_again()
    await mender.mend_all()
    assert (mender.mended_count, open_from(node), node.local.core.last_stable_offset) == (1, None, end_offset)
    assert node.stored() == cluster.nodes[LEADER].stored()


async def test_a_batch_that_named_another_producer_is_forgotten_when_it_is_mended(cluster: Cluster) -> None:
    """Nobody would ever end that one's transaction."""
    await send(cluster)
    await end(cluster, is_commit=True)
    node = await restart_with_rot(cluster, FOLLOWER, BEGIN, position=PRODUCER_ID_LAST_BYTE, is_found=False)
    assert (open_from(node), node.local.core.producers.first_unstable_offset) == (None, BEGIN)
    mender_of(cluster, FOLLOWER)
    await cast(Any, node).scrubber.verify_all()
    assert await mend(cluster, node) is LogState.ONLINE
    assert node.local.core.last_stable_offset == node.local.high_watermark
    assert not node.local.core.producers.is_partial


async def test_what_was_aborted_while_it_could_not_be_read_is_aborted(cluster: Cluster) -> None:
    """When the marker came, nobody here knew of a transaction that it could end."""
    await send(cluster)
    node = await restart_with_rot(cluster, FOLLOWER, BEGIN)
    await end(cluster, is_commit=False)
    end_offset = node.local.log.log_end_offset
    assert node.local.log.aborted_transactions(0, end_offset) == []
    await mend(cluster, node)
    aborted = node.local.log.aborted_transactions(0, end_offset)
    assert [(each.producer_id, each.first_offset) for each in aborted] == [(PRODUCER, BEGIN)]
    assert aborted == cluster.nodes[LEADER].local.log.aborted_transactions(0, end_offset)


async def test_a_leader_that_does_not_know_has_another_one_lead_and_reads_again_at_once(cluster: Cluster) -> None:
    """Later it might lead again, by an election of the preferred leaders."""
    await send(cluster)
    node = await restart_with_rot(cluster, LEADER, BEGIN)
    end_offset = node.local.log.log_end_offset
    assert node.local.is_leader
    assert await mend(cluster, node) is LogState.ONLINE
    assert (cluster.state.leader, node.local.is_leader) == (FOLLOWER, False)
    assert (open_from(node), node.local.core.producers.is_partial) == (BEGIN, False)
    await end(cluster, is_commit=False)
    assert [each.first_offset for each in node.local.log.aborted_transactions(0, end_offset)] == [BEGIN]


async def test_readers_of_committed_records_wait_in_front_of_it_while_nobody_else_can_lead(cluster: Cluster) -> None:
    await send(cluster)
    node = await restart_with_rot(cluster, LEADER, BEGIN)
    await cluster.until(lambda: node.local.high_watermark == node.local.log.log_end_offset)
    cluster.cut_links.append((LEADER, FOLLOWER))
    await cluster.elect(LEADER, (LEADER,))
    assert await mend(cluster, node) is LogState.ONLINE
    assert (node.local.is_leader, node.local.core.last_stable_offset) == (True, BEGIN)
    cluster.cut_links.clear()
    await cluster.until(lambda: set(cluster.state.isr) == {LEADER, FOLLOWER})
    await cast(Any, node).mender.mend_all()
    assert (node.local.is_leader, open_from(node)) == (False, BEGIN)


async def test_no_snapshot_is_written_of_what_is_not_known(cluster: Cluster) -> None:
    """It would outlive the mending."""
    await send(cluster)
    node = await restart_with_rot(cluster, FOLLOWER, BEGIN)
    node.local.log.roll()
    assert not [path for path in node.files._files if path.endswith(".snapshot")]
    await mend(cluster, node)
    await cluster.nodes[LEADER].append(b"later")
    node.local.log.roll()
    assert [path for path in node.files._files if path.endswith(".snapshot")]


async def test_it_is_read_again_only_after_a_cut_that_is_under_way(cluster: Cluster) -> None:
    await send(cluster)
    node = await restart_with_rot(cluster, FOLLOWER, BEGIN)
    end_offset = node.local.log.log_end_offset
    await cluster.until(lambda: node.local.high_watermark == end_offset)
    mender, local = mender_of(cluster, FOLLOWER), node.local
    mender.look_for_damage()
    local.busy = asyncio.get_running_loop().create_future()
    await mender.mend_all()
    assert local.log.state is LogState.DAMAGED
    local.busy = None
    await mender.mend_all()
    assert (open_from(node), mender.damaged_count) == (BEGIN, 0)
