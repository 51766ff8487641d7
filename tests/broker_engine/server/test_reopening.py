"""A replica whose log cannot be opened, on a full disk for instance, is opened when it can be, with what was saved."""

from __future__ import annotations

from broker_engine.errors import ErrorCode
from broker_engine.log.checkpoints import METADATA_FILE
from broker_engine.names import directory
from broker_engine.server.checkpoints import LOG_STARTS, RECOVERY_POINTS, read_checkpoint
from tests.broker_engine.server.replicas import NAME, TOPIC_ID, Cluster, Node, led_by

KEY = (NAME, 0)


async def restarted_on_a_full_disk(cluster: Cluster) -> Node:
    """Whose directory it is has to be written anew, and there is no room."""
    files = cluster.nodes[2].files
    await cluster.nodes[2].upkeep.write_recovery_points()
    files.unlink(f"{directory(*KEY)}/{METADATA_FILE}")
    files.no_space = True
    return await cluster.restart(2)


async def test_a_log_that_could_not_be_opened_is_opened_when_there_is_room() -> None:
    cluster = Cluster(topic={"ack.durability": "fsync"})
    await cluster.start(1, 2, state=led_by(1, (1, 2)))
    assert await cluster.nodes[1].append(b"a", b"b", b"c") is ErrorCode.NONE
    node = await restarted_on_a_full_disk(cluster)
    assert (node.partitions.find(TOPIC_ID, 0), node.partitions.unopened_count) == (None, 1)
    assert await node.partitions.open_unopened() == 0
    node.files.no_space = False
    assert await node.partitions.open_unopened() == 1
    assert (node.local.log.log_end_offset, node.partitions.unopened_count) == (3, 0)
    await cluster.until(lambda: set(cluster.state.isr) == {1, 2})
    await cluster.stop()


async def test_its_checkpoints_stay_until_then() -> None:
    """Else deleted records would come back, and damage be taken for a torn tail."""
    cluster = Cluster(topic={"ack.durability": "fsync"})
    await cluster.start(1, 2, state=led_by(1, (1, 2)))
    assert await cluster.nodes[1].append(b"a", b"b", b"c") is ErrorCode.NONE
    before = cluster.nodes[2]
    await cluster.until(lambda: before.local.high_watermark == 3)
    before.local.log.delete_records_before(2)
    before.local.note_log_start()
    node = await restarted_on_a_full_disk(cluster)
    node.files.no_space = False
    await node.upkeep.write_recovery_points()
    assert read_checkpoint(node.files, RECOVERY_POINTS)[KEY] == 3
    assert read_checkpoint(node.files, LOG_STARTS)[KEY] == 2
    assert await node.partitions.open_unopened() == 1
    assert node.local.log.log_start_offset == 2
    await cluster.stop()


async def test_a_topic_that_is_gone_meanwhile_is_not_tried_again() -> None:
    cluster = Cluster(topic={"ack.durability": "fsync"})
    await cluster.start(1, 2, state=led_by(1, (1, 2)))
    assert await cluster.nodes[1].append(b"a") is ErrorCode.NONE
    node = await restarted_on_a_full_disk(cluster)
    await node.show(cluster.without_topic())
    assert node.partitions.unopened_count == 0
    assert KEY not in dict(node.partitions.recovery_points())
    await cluster.stop()
