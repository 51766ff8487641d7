"""F13: copies that rot are mended by the others, leader or follower, and nothing rotten is spread."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any, cast

import pytest
import pytest_asyncio

from broker_engine.errors import BrokerError, ErrorCode
from broker_engine.handlers import replica_read
from broker_engine.handlers.api import Call
from broker_engine.log.checkpoints import EPOCHS_FILE, NO_EPOCH
from broker_engine.log.results import LogState
from broker_engine.records.header import parse_header
from broker_engine.server.mender import Mender
from broker_engine.server.scrubber import Scrubber
from broker_engine.server.supervisor import Supervisor
from broker_engine.wire.messages.internal_replica_read import ReplicaReadRequest
from tests.broker_engine.server.replicas import Cluster, Node, led_by

LEADER, FOLLOWER = 1, 2
LEADER_EPOCH_LAST_BYTE = 15
"""Of a batch; no CRC covers it."""


class Wires:
    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    async def ask(self, node_id: int, message: Any, *_: Any, **__: Any) -> Any:
        assert isinstance(message, ReplicaReadRequest)
        call = Call(cast(Any, self._cluster.nodes[node_id]), cast(Any, None), cast(Any, None), 0, None)
        try:
            return await replica_read.handle(message, call)
        except BrokerError as error:
            return replica_read.refuse(message, error)


def mender_of(cluster: Cluster, node_id: int) -> Mender:
    node: Any = cluster.nodes[node_id]
    node.scrubber = Scrubber(node.partitions, bytes_per_s_max=1 << 30)
    node.mender = Mender(
        node_id, node.partitions, Wires(cluster), node.scrubber, lambda: cluster.image, tasks=Supervisor()
    )
    node.scrubber.on_damaged = node.mender.note_damaged
    node.partitions.on_doubted = node.mender.doubt
    return cast(Mender, node.mender)


@pytest_asyncio.fixture
async def cluster() -> AsyncIterator[Cluster]:
    """Nine batches in three segments, all committed; the last segment is the active one."""
    made = Cluster(topic={"min.insync.replicas": "2"})
    await made.start(LEADER, FOLLOWER, state=led_by(LEADER, (LEADER, FOLLOWER)))
    for number in range(9):
        if number in (3, 6):
            for node in made.nodes.values():
                node.local.log.roll()
        await made.nodes[LEADER].append(b"%d" % number)
    await made.until(lambda: made.nodes[FOLLOWER].local.high_watermark == 9)
    yield made
    await made.stop()


def path_of(node: Node, base_offset: int) -> str:
    (path,) = (path for path in node.files._files if path.endswith(f"{base_offset:020}.log"))
    return path


def rot(node: Node, base_offset: int, position: int = 100) -> None:
    node.files._files[path_of(node, base_offset)].data[position] ^= 1


@pytest.mark.parametrize("position", [6, 7, 15, 16])
async def test_bits_that_no_crc_covers_are_found_too(cluster: Cluster, position: int) -> None:
    """The base offset of the first batch (a little, and so that it lies in the second's place), epoch and magic."""
    before, mender = cluster.nodes[FOLLOWER].stored(), mender_of(cluster, FOLLOWER)
    node: Any = cluster.nodes[FOLLOWER]
    rot(node, 0, position)
    await node.scrubber.verify_all()
    assert node.local.log.state is LogState.DAMAGED
    await mender.mend_all()
    assert node.stored() == before


@pytest.mark.parametrize("node_id", [LEADER, FOLLOWER])
async def test_a_rotten_copy_is_made_whole_by_the_other(cluster: Cluster, node_id: int) -> None:
    before, mender = cluster.nodes[node_id].stored(), mender_of(cluster, node_id)
    node: Any = cluster.nodes[node_id]
    rot(node, 3)
    await node.scrubber.verify_all()
    assert node.local.log.state is LogState.DAMAGED
    with pytest.raises(BrokerError) as raised:
        node.local.log.read(4, max_bytes=1000, end_offset=9, at_least_one=True)
    assert raised.value.code is ErrorCode.KAFKA_STORAGE_ERROR
    await mender.mend_all()
    assert (node.local.log.state, mender.mended_count) == (LogState.ONLINE, 1)
    assert node.stored() == before
    assert cluster.alterations == [], "it never left the ISR"


async def test_a_leader_that_is_alone_in_sync_is_mended_by_a_replica_that_is_not(cluster: Cluster) -> None:
    """Else nobody could ever follow it again: who asks for what is rotten there gets an error."""
    before = cluster.nodes[LEADER].stored()
    cluster.cut_links.append((LEADER, FOLLOWER))
    behind = await cluster.restart(FOLLOWER)
    await cluster.elect(LEADER, (LEADER,))
    mender, node = mender_of(cluster, LEADER), cast(Any, cluster.nodes[LEADER])
    assert behind.local.high_watermark == 0, "it does not know what is committed"
    rot(node, 3)
    await node.scrubber.verify_all()
    await mender.mend_all()
    assert (node.local.log.state, node.stored() == before) == (LogState.ONLINE, True)


async def test_a_leader_whose_records_rot_before_others_have_them_has_another_one_lead(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else no follower gets past them, and nothing is committed any more."""
    monkeypatch.setattr("broker_engine.server.mender._HELD_UP_MS", 20)
    mender, leader, follower = mender_of(cluster, LEADER), cast(Any, cluster.nodes[LEADER]), cluster.nodes[FOLLOWER]
    cluster.cut_links.append((LEADER, FOLLOWER))
    for value in (b"rots", b"behind it"):
        leader.local.log.roll()
        await leader.append(value, acks=1)
    rot(leader, 9, position=65)
    await leader.scrubber.verify_all()
    assert leader.local.log.state is LogState.DAMAGED
    cluster.cut_links.clear()
    async with asyncio.timeout(10):
        while cluster.state.leader == LEADER:
            await mender.mend_all()
            await asyncio.sleep(0.01)
    await cluster.until(lambda: set(cluster.state.isr) == {LEADER, FOLLOWER})
    assert await follower.append(b"instead") is ErrorCode.NONE
    assert (leader.local.log.state, leader.local.log.log_end_offset) == (LogState.ONLINE, 10)
    assert leader.stored() == follower.stored()


async def test_what_was_mended_is_whole_after_a_restart_without_power(cluster: Cluster) -> None:
    before, mender = cluster.nodes[FOLLOWER].stored(), mender_of(cluster, FOLLOWER)
    node: Any = cluster.nodes[FOLLOWER]
    rot(node, 0)
    await node.scrubber.verify_all()
    await mender.mend_all()
    again = await cluster.restart(FOLLOWER, has_power=False)
    assert again.local.log.holes == []
    assert again.stored() == before


async def test_a_producer_whose_last_batch_was_rotten_at_the_start_is_known_when_it_is_mended(cluster: Cluster) -> None:
    """Or its resend would be stored a second time: no snapshot outlived the crash, and the batch cannot be read."""
    identity = {"producer_id": 7, "producer_epoch": 0, "base_sequence": 3}
    leader = cluster.nodes[LEADER]
    await leader.append(b"once", **identity)
    for node in cluster.nodes.values():
        node.local.log.roll()
    await leader.append(b"later")
    rot(leader, 6, position=-1)
    mender_of(cluster, LEADER)
    await cast(Any, leader).scrubber.verify_all()
    for path in [path for path in leader.files._files if path.endswith(".snapshot")]:
        leader.files.unlink(path)
    leader = await cluster.restart(LEADER)
    assert leader.local.log.state is LogState.DAMAGED
    with pytest.raises(BrokerError) as raised:
        await leader.append(b"once", **identity)
    assert raised.value.code is ErrorCode.NOT_LEADER_OR_FOLLOWER
    end_offset = leader.local.log.log_end_offset
    await cluster.until(lambda: leader.local.high_watermark == end_offset)
    mender = mender_of(cluster, LEADER)
    mender.look_for_damage()
    await mender.mend_all()
    assert await leader.append(b"once", **identity) is ErrorCode.NONE
    assert leader.local.log.log_end_offset == end_offset, "it is there already"


async def lose_epochs(cluster: Cluster, node_id: int, *, base_offset: int, position: int) -> Node:
    """A batch rots, and a crash takes the epochs' checkpoint: they are made anew from the batches that can be read."""
    mender_of(cluster, node_id)
    node: Any = cluster.nodes[node_id]
    rot(node, base_offset, position)
    await node.scrubber.verify_all()
    assert node.local.log.state is LogState.DAMAGED
    (path,) = (path for path in node.files._files if path.endswith(EPOCHS_FILE))
    node.files.unlink(path)
    return await cluster.restart(node_id)


async def mend(cluster: Cluster, node: Node) -> LogState:
    end_offset = node.local.log.log_end_offset
    await cluster.until(lambda: node.local.high_watermark == end_offset)
    mender = mender_of(cluster, node.node_id)
    mender.look_for_damage()
    await mender.mend_all()
    return node.local.log.state


async def test_a_log_that_lost_the_epoch_of_its_beginning_learns_it_with_what_is_mended(cluster: Cluster) -> None:
    before, epochs = cluster.nodes[FOLLOWER].stored(), cluster.nodes[FOLLOWER].local.log.epochs.entries
    node = await lose_epochs(cluster, FOLLOWER, base_offset=0, position=30)
    assert node.local.log.epoch_of(0) == NO_EPOCH
    assert await mend(cluster, node) is LogState.ONLINE
    assert (node.stored(), node.local.log.epochs.entries) == (before, epochs)


async def test_an_epoch_that_began_in_what_is_mended_begins_there_again(cluster: Cluster) -> None:
    await cluster.elect(LEADER, (LEADER, FOLLOWER))
    for node in cluster.nodes.values():
        node.local.log.roll()
    for value in (b"first of its epoch", b"second"):
        await cluster.nodes[LEADER].append(value)
    for node in cluster.nodes.values():
        node.local.log.roll()
    await cluster.nodes[LEADER].append(b"third")
    before, epochs = cluster.nodes[FOLLOWER].stored(), cluster.nodes[FOLLOWER].local.log.epochs.entries
    assert epochs[-1].start_offset == 9
    node = await lose_epochs(cluster, FOLLOWER, base_offset=9, position=30)
    assert node.local.log.epochs.entries[-1].start_offset == 10
    assert await mend(cluster, node) is LogState.ONLINE
    assert (node.stored(), node.local.log.epochs.entries) == (before, epochs)


async def test_who_has_another_history_behind_the_hole_does_not_mend_it(cluster: Cluster) -> None:
    node = await lose_epochs(cluster, FOLLOWER, base_offset=0, position=30)
    first_bytes = parse_header(bytes(cluster.nodes[LEADER].files._files[path_of(node, 0)].data)).size_bytes
    rot(cluster.nodes[LEADER], 0, first_bytes + LEADER_EPOCH_LAST_BYTE)
    assert await mend(cluster, node) is LogState.DAMAGED


async def test_where_all_copies_are_rotten_nothing_is_spread(cluster: Cluster) -> None:
    mender = mender_of(cluster, LEADER)
    mender_of(cluster, FOLLOWER)
    for node in cluster.nodes.values():
        rot(node, 3)
    leader: Any = cluster.nodes[LEADER]
    await leader.scrubber.verify_all()
    await mender.mend_all()
    assert leader.local.log.state is LogState.DAMAGED
    assert mender.mended_count == 0


async def test_what_nobody_has_does_not_keep_the_rest_from_being_mended(cluster: Cluster) -> None:
    for node_id in (LEADER, FOLLOWER):
        mender_of(cluster, node_id)
    for node in cluster.nodes.values():
        rot(node, 0)
    leader: Any = cluster.nodes[LEADER]
    rot(leader, 3)
    for node_id in (LEADER, FOLLOWER):
        await cast(Any, cluster.nodes[node_id]).scrubber.verify_all()
    assert len(leader.local.log.holes) == 2
    await leader.mender.mend_all()
    assert [hole.start_offset for hole in leader.local.log.holes] == [1]


async def test_a_leader_that_is_doubted_looks_at_its_disk(cluster: Cluster) -> None:
    """Also in the active segment, which is sealed for it."""
    mender = mender_of(cluster, LEADER)
    before = cluster.nodes[LEADER].stored()
    rot(cluster.nodes[LEADER], 6)
    mender.doubt(cluster.nodes[LEADER].local, 7)
    await mender._look_again()
    assert cluster.nodes[LEADER].local.log.state is LogState.DAMAGED
    await mender.mend_all()
    assert cluster.nodes[LEADER].stored() == before


async def test_what_a_cut_meets_is_looked_at_when_the_cut_is_over(cluster: Cluster) -> None:
    """It is doubted while the log is busy, and from a thread."""
    mender, local = mender_of(cluster, FOLLOWER), cluster.nodes[FOLLOWER].local
    rot(cluster.nodes[FOLLOWER], 6)
    local.busy = asyncio.get_running_loop().create_future()
    await asyncio.to_thread(mender.doubt, local, 7)
    await mender._look_again()
    assert local.log.state is LogState.ONLINE
    local.busy = None
    await mender._look_again()
    assert local.log.state is LogState.DAMAGED


async def test_a_leader_that_cannot_find_what_is_asked_for_has_it_mended_instead_of_passing_over_it(
    cluster: Cluster,
) -> None:
    """The length of a batch has rotted, so those behind it in its segment seemed not to be there."""
    mender, leader = mender_of(cluster, LEADER), cluster.nodes[LEADER]
    before = leader.stored()
    rot(leader, 3, position=8)
    with pytest.raises(BrokerError) as raised:
        leader.local.read_for_replica(3, bytes_max=1000, at_least_one=True)
    assert raised.value.code is ErrorCode.KAFKA_STORAGE_ERROR
    await mender._look_again()
    await mender.mend_all()
    assert (leader.stored() == before, mender.mended_count) == (True, 1)


@pytest.mark.parametrize("position", [0, 7], ids=["far too high", "a little too high"])
async def test_what_rots_after_it_was_verified_is_found_when_the_rest_is_mended(
    cluster: Cluster, position: int
) -> None:
    mender, node = mender_of(cluster, FOLLOWER), cast(Any, cluster.nodes[FOLLOWER])
    before = node.stored()
    rot(node, 3)
    await node.scrubber.verify_all()
    node.files._files[path_of(node, 3)].data[2 * len(before) // 9 + position] ^= 8
    await mender.mend_all()
    assert node.local.log.state is LogState.DAMAGED, "not taken over as it is"
    await mender.mend_all()
    assert (node.local.log.state, node.stored() == before) == (LogState.ONLINE, True)


async def test_mending_that_is_killed_has_nothing_left_to_do(cluster: Cluster) -> None:
    """A killed process runs no cleanup: where mending would await in it, throwing it away is an error."""
    work = mender_of(cluster, LEADER).run()
    work.send(None)
    work.close()
