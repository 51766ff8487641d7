"""Replicas that follow one another: what is acked is on all of them, and nothing else stays."""

from __future__ import annotations

import asyncio
import dataclasses
import threading
import time
from collections.abc import AsyncIterator
from typing import Any
from uuid import UUID

import pytest
import pytest_asyncio

from broker_engine.clock import SystemClock
from broker_engine.errors import BrokerError, ErrorCode
from broker_engine.log.flush import FlushJob
from broker_engine.log.memory_files import MemoryFiles
from tests.broker_engine.server.replicas import TOPIC_ID, Cluster, Node, led_by


@pytest_asyncio.fixture(params=["fsync", "page-cache"])
async def cluster(request: pytest.FixtureRequest) -> AsyncIterator[Cluster]:
    made = Cluster(topic={"ack.durability": request.param, "min.insync.replicas": "2"})
    await made.start(1, 2, 3, state=led_by(1, (1, 2, 3)))
    yield made
    await made.stop()


def ends(cluster: Cluster) -> list[int]:
    return [node.local.core.log_end_offset for node in cluster.nodes.values()]


async def test_what_is_acked_is_on_all_in_sync_replicas(cluster: Cluster) -> None:
    for number in range(20):
        assert await cluster.nodes[1].append(b"%d" % number) is ErrorCode.NONE
        assert ends(cluster) == [number + 1] * 3
    assert cluster.nodes[1].stored() == cluster.nodes[2].stored() == cluster.nodes[3].stored()
    if cluster.topic_configs["ack.durability"] == "fsync":
        assert [node.local.log.durable_end_offset for node in cluster.nodes.values()] == [20] * 3


async def test_followers_learn_the_high_watermark(cluster: Cluster) -> None:
    await cluster.nodes[1].append(b"a")
    await cluster.until(lambda: cluster.nodes[2].local.high_watermark == 1)


async def test_a_silent_follower_leaves_the_isr_and_comes_back(cluster: Cluster) -> None:
    cluster.cut_links.append((1, 3))
    assert await cluster.nodes[1].append(b"a") is ErrorCode.NONE
    assert cluster.state.isr == (1, 2)
    cluster.cut_links.clear()
    await cluster.until(lambda: set(cluster.state.isr) == {1, 2, 3})
    assert ends(cluster) == [1, 1, 1]


async def test_a_follower_whose_disk_is_full_does_not_say_so_with_each_try_and_goes_on_when_there_is_room(
    cluster: Cluster, caplog: pytest.LogCaptureFixture
) -> None:
    files = cluster.nodes[3].files
    files.no_space = True
    assert await cluster.nodes[1].append(b"a") is ErrorCode.NONE
    assert cluster.state.isr == (1, 2), "it was tried again all that time, many times"
    told = [record for record in caplog.records if "cannot take" in record.message]
    assert 1 <= len(told) <= 2, "once, and once more where the new ISR is followed"
    files.no_space = False
    await cluster.until(lambda: set(cluster.state.isr) == {1, 2, 3})
    assert ends(cluster) == [1, 1, 1]


async def test_followers_are_not_blamed_for_a_leader_that_stood_still(cluster: Cluster) -> None:
    for _ in range(3):
        await cluster.nodes[1].append(b"a", acks=1)
        time.sleep(0.6)  # noqa: ASYNC251 - longer than the lag time, and nobody reads a fetch
        assert await cluster.nodes[1].append(b"b") is ErrorCode.NONE
    assert cluster.alterations == []


async def test_below_min_insync_producers_are_told_before_and_after(cluster: Cluster) -> None:
    cluster.cut_links += [(1, 2), (1, 3)]
    assert await cluster.nodes[1].append(b"a") is ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND
    assert cluster.state.isr == (1,)
    with pytest.raises(BrokerError) as raised:
        await cluster.nodes[1].append(b"b")
    assert raised.value.code is ErrorCode.NOT_ENOUGH_REPLICAS
    assert cluster.nodes[1].local.high_watermark == 0
    cluster.cut_links.clear()
    await cluster.until(lambda: len(cluster.state.isr) == 3)
    assert await cluster.nodes[1].append(b"c") is ErrorCode.NONE
    assert ends(cluster) == [2, 2, 2]


async def test_a_new_leader_has_what_was_acked_and_the_old_ones_own_tail_is_cut(cluster: Cluster) -> None:
    assert await cluster.nodes[1].append(b"acked") is ErrorCode.NONE
    cluster.cut_links += [(1, 2), (1, 3)]
    await cluster.nodes[1].append(b"nobody", b"has", b"these", acks=1)
    await cluster.elect(2, (2, 3), only=(2, 3))
    assert await cluster.nodes[2].append(b"next") is ErrorCode.NONE
    assert ends(cluster) == [4, 2, 2]
    cluster.cut_links.clear()
    await cluster.nodes[1].show(cluster.image)
    await cluster.until(lambda: set(cluster.state.isr) == {1, 2, 3})
    assert cluster.nodes[1].stored() == cluster.nodes[2].stored() == cluster.nodes[3].stored()
    assert cluster.nodes[1].local.log.epochs.entries == cluster.nodes[2].local.log.epochs.entries


async def test_the_new_leader_knows_a_resend(cluster: Cluster) -> None:
    await cluster.nodes[1].append(b"a", b"b", producer_id=9, producer_epoch=0, base_sequence=0)
    await cluster.elect(3, (2, 3))
    await cluster.nodes[3].append(b"a", b"b", producer_id=9, producer_epoch=0, base_sequence=0)
    assert ends(cluster)[2] == 2
    await cluster.nodes[3].append(b"c", producer_id=9, producer_epoch=0, base_sequence=2)
    assert ends(cluster)[2] == 3


async def test_no_jump_of_a_clock_makes_a_resend_new(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    """Idle producers are forgotten by the monotonic clock. Found by simulation, seed 100340."""
    identity = {"producer_id": 9, "producer_epoch": 0, "base_sequence": 0}
    await cluster.nodes[1].append(b"a", **identity)
    now_ms = SystemClock().now_ms()
    monkeypatch.setattr(SystemClock, "now_ms", lambda self: now_ms + 3 * 86_400_000)
    await cluster.nodes[1].append(b"a", **identity)
    assert ends(cluster)[0] == 1


async def test_what_was_cut_off_is_no_resend(cluster: Cluster) -> None:
    await cluster.nodes[1].append(b"a", producer_id=9, producer_epoch=0, base_sequence=0)
    cluster.cut_links += [(1, 2), (1, 3)]
    await cluster.nodes[1].append(b"b", acks=1, producer_id=9, producer_epoch=0, base_sequence=1)
    await cluster.elect(2, (2, 3), only=(2, 3))
    cluster.cut_links.clear()
    await cluster.nodes[1].show(cluster.image)
    await cluster.until(lambda: set(cluster.state.isr) == {1, 2, 3})
    await cluster.elect(1, (1, 2, 3))
    assert await cluster.nodes[1].append(b"b", producer_id=9, producer_epoch=0, base_sequence=1) is ErrorCode.NONE
    assert ends(cluster) == [2, 2, 2]


async def test_waiting_producers_of_a_leader_that_lost_its_role_look_elsewhere(cluster: Cluster) -> None:
    cluster.cut_links += [(1, 2), (1, 3)]
    waiting = asyncio.ensure_future(cluster.nodes[1].append(b"a"))
    await cluster.until(lambda: ends(cluster)[0] == 1)
    await cluster.elect(2, (2, 3))
    assert await waiting is ErrorCode.NOT_LEADER_OR_FOLLOWER
    with pytest.raises(BrokerError) as raised:
        await cluster.nodes[1].append(b"b")
    assert raised.value.code is ErrorCode.NOT_LEADER_OR_FOLLOWER


async def test_a_leader_of_a_new_term_says_its_end_only_once_followers_have_come(cluster: Cluster) -> None:
    await cluster.nodes[1].append(b"a")
    cluster.cut_links += [(2, 3), (1, 2)]
    await cluster.elect(2, (1, 2, 3))
    assert not cluster.nodes[2].local.knows_latest_offset
    cluster.cut_links.clear()
    await cluster.until(lambda: cluster.nodes[2].local.knows_latest_offset)


async def test_a_deposed_leader_tells_the_next_one_when_its_flush_has_ended(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Long polls are long here: nothing else would tell it. Found by simulation, seed 100046."""
    cluster, disk, flush = Cluster(settings={"replica.fetch.wait.max.ms": "60000"}), threading.Event(), FlushJob.run
    await cluster.start(1, 2, state=led_by(1, (1, 2)))

    def flush_when_the_disk_is_free(job: FlushJob) -> None:
        if job.files is cluster.nodes[1].files:
            disk.wait(10)
        flush(job)

    monkeypatch.setattr(FlushJob, "run", flush_when_the_disk_is_free)
    await cluster.nodes[1].append(b"a", acks=1)
    await cluster.until(lambda: cluster.nodes[2].local.log.durable_end_offset == 1)
    await cluster.elect(2, (1, 2))
    assert not cluster.nodes[2].local.knows_latest_offset
    disk.set()
    await cluster.until(lambda: cluster.nodes[2].local.knows_latest_offset)
    await cluster.stop()


async def test_a_restarted_follower_goes_on_from_its_log(cluster: Cluster) -> None:
    for number in range(5):
        await cluster.nodes[1].append(b"%d" % number)
    await cluster.restart(2)
    assert cluster.nodes[2].local.core.log_end_offset == 5
    assert await cluster.nodes[1].append(b"next") is ErrorCode.NONE
    assert ends(cluster) == [6, 6, 6]


async def test_a_follower_whose_log_is_all_before_the_leaders_begins_anew(cluster: Cluster) -> None:
    for number in range(5):
        await cluster.nodes[1].append(b"%d" % number)
    cluster.cut_links.append((1, 3))
    for number in range(5):
        await cluster.nodes[1].append(b"%d" % number)
    leader = cluster.nodes[1].local
    leader.log.roll()
    leader.delete_records_before(leader.high_watermark)
    assert await cluster.nodes[1].append(b"last") is ErrorCode.NONE
    cluster.cut_links.clear()
    await cluster.until(lambda: set(cluster.state.isr) == {1, 2, 3})
    follower = cluster.nodes[3].local
    assert (follower.log.log_start_offset, follower.core.log_end_offset) == (10, 11)
    await cluster.until(lambda: cluster.nodes[2].local.log_start_offset == 10)


async def test_a_replica_begins_inside_a_batch_where_the_leaders_log_does(cluster: Cluster) -> None:
    cluster.cut_links.append((1, 3))
    assert await cluster.nodes[1].append(*(b"%d" % number for number in range(10))) is ErrorCode.NONE
    cluster.nodes[1].local.delete_records_before(7)
    cluster.cut_links.clear()
    await cluster.until(lambda: set(cluster.state.isr) == {1, 2, 3})
    assert await cluster.nodes[1].append(b"next") is ErrorCode.NONE
    assert ends(cluster) == [11, 11, 11]
    await cluster.until(lambda: [node.local.log_start_offset for node in cluster.nodes.values()] == [7, 7, 7])
    assert cluster.nodes[3].stored() == cluster.nodes[1].stored()
    await cluster.restart(3)
    assert (cluster.nodes[3].local.core.log_end_offset, cluster.nodes[3].local.log.holes) == (11, [])


async def test_a_replica_that_a_reassignment_adds_catches_up_and_one_that_it_removes_is_gone(cluster: Cluster) -> None:
    for number in range(5):
        await cluster.nodes[1].append(b"%d" % number)
    cluster.nodes[4] = Node(cluster, 4, MemoryFiles())
    brokers = {**cluster.image.brokers, 4: dataclasses.replace(cluster.image.brokers[3], id=4)}
    cluster.image = dataclasses.replace(cluster.image, brokers=brokers)
    await cluster.set(dataclasses.replace(cluster.state, replicas=(1, 2, 3, 4), partition_epoch=9))
    await cluster.until(lambda: set(cluster.state.isr) == {1, 2, 3, 4})
    await cluster.set(dataclasses.replace(cluster.state, replicas=(1, 2, 4), isr=(1, 2, 4), partition_epoch=19))
    assert len(cluster.nodes[3].partitions) == 0
    assert not cluster.nodes[3].files.exists("orders-0/00000000000000000000.log")
    assert await cluster.nodes[1].append(b"more") is ErrorCode.NONE
    assert cluster.nodes[4].local.core.log_end_offset == 6


@pytest.mark.parametrize(("side", "named"), [("leader", "0:1"), ("follower", "0:3")])
async def test_a_throttled_replica_that_is_not_in_sync_catches_up_at_its_rate(side: str, named: str) -> None:
    """As in Kafka each list names brokers of its own side: who serves, who fetches."""
    made = Cluster(
        topic={"ack.durability": "page-cache", f"{side}.replication.throttled.replicas": named},
        settings={f"{side}.replication.throttled.rate": "20000", "replica.fetch.max.bytes": "2000"},
    )
    await made.start(1, 2, 3, state=led_by(1, (1, 2, 3), isr=(1, 2)))
    made.cut_links.append((1, 3))
    for _ in range(10):
        assert await made.nodes[1].append(b"x" * 1000) is ErrorCode.NONE
    began_s = asyncio.get_running_loop().time()
    made.cut_links.clear()
    await made.until(lambda: set(made.state.isr) == {1, 2, 3})
    assert asyncio.get_running_loop().time() - began_s > 0.3
    await made.stop()


async def test_a_topic_that_gets_a_deleted_ones_name_in_the_same_image_has_a_log_of_its_own(cluster: Cluster) -> None:
    assert await cluster.nodes[1].append(b"old") is ErrorCode.NONE
    new_id = UUID(int=78)
    topic = dataclasses.replace(cluster.image.topics[TOPIC_ID], id=new_id)
    cluster.image = dataclasses.replace(cluster.image, topics={new_id: topic})
    for node in cluster.nodes.values():
        await node.show(cluster.image)
        assert len(node.partitions) == 1
        local = node.partitions.find(new_id, 0)
        assert local is not None
        assert local.log.log_end_offset == 0
        assert node.files.exists("orders-0/00000000000000000000.log")
        assert [name for name in node.files.list_dir("") if name.startswith("orders-0.")] == []


async def test_a_log_that_comes_back_empty_does_not_take_the_answer_that_was_for_the_last_one(cluster: Cluster) -> None:
    """It would lack the records before, and be in sync all the same."""
    leader, follower = cluster.nodes[1], cluster.nodes[3]
    await leader.append(b"a")
    await cluster.until(lambda: ends(cluster) == [1, 1, 1])
    held = HeldAnswers(follower)
    await cluster.until(lambda: held.asked_count == 1)
    await leader.append(b"b", acks=1)
    await cluster.until(lambda: held.answered_count == 1)
    state = cluster.state
    epochs = {"leader_epoch": state.leader_epoch + 1, "partition_epoch": state.partition_epoch + 1}
    await cluster.set(dataclasses.replace(state, replicas=(1, 2), isr=(1, 2), **epochs))
    epochs["partition_epoch"] += 1
    await cluster.set(dataclasses.replace(state, replicas=(1, 2, 3), isr=(1, 2), **epochs))
    await cluster.until(lambda: held.asked_count == 2)
    held.may_come.set()
    await cluster.until(lambda: ends(cluster) == [2, 2, 2])
    assert follower.stored() == leader.stored()


class HeldAnswers:
    """What a node is answered reaches it only when it may."""

    def __init__(self, node: Node) -> None:
        self.asked_count = self.answered_count = 0
        self.may_come = asyncio.Event()
        self._ask = node.ask
        node.ask = self.ask  # type: ignore[method-assign]

    async def ask(self, *args: Any, **kwargs: Any) -> Any:
        self.asked_count += 1
        answer = await self._ask(*args, **kwargs)
        self.answered_count += 1
        await self.may_come.wait()
        return answer
