"""A leader's answers to followers: sessions, epochs, waits. Asked directly, by way of the codec."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from broker_engine.errors import ErrorCode
from broker_engine.wire.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    ForgottenTopic,
    ReplicaState,
)
from tests.broker_engine.server.replicas import TOPIC_ID, Cluster, led_by

FOLLOWER, FOLLOWER_EPOCH = 2, 102
LONG_MS = 20_000


@pytest_asyncio.fixture
async def cluster() -> AsyncIterator[Cluster]:
    """Node 1 leads; node 2 is silent, so that the test can speak for it."""
    made = Cluster(topic={"ack.durability": "page-cache"})
    await made.start(1, 2, state=led_by(1, (1, 2)))
    await made.nodes[2].replication.stop()
    yield made
    await made.stop()


def asked(offset: int = 0, *, leader_epoch: int = 0, last_epoch: int = -1) -> FetchTopic:
    partition = FetchPartition(
        partition=0,
        current_leader_epoch=leader_epoch,
        fetch_offset=offset,
        last_fetched_epoch=last_epoch,
        partition_max_bytes=1 << 20,
        durable_offset=offset,
    )
    return FetchTopic(topic_id=TOPIC_ID, partitions=[partition])


async def fetch(
    cluster: Cluster,
    *topics: FetchTopic,
    session: tuple[int, int] = (0, 0),
    wait_ms: int = 0,
    epoch: int = FOLLOWER_EPOCH,
    forgotten: tuple[ForgottenTopic, ...] = (),
) -> FetchResponse:
    request = FetchRequest(
        replica_state=ReplicaState(replica_id=FOLLOWER, replica_epoch=epoch),
        max_wait_ms=wait_ms,
        min_bytes=1,
        session_id=session[0],
        session_epoch=session[1],
        topics=list(topics),
        forgotten_topics_data=list(forgotten),
    )
    return await cluster.nodes[2].ask(1, request, FetchResponse, lane="fetch-0", timeout_ms=LONG_MS, version=17)


def code_of(response: FetchResponse) -> ErrorCode:
    ((partition,),) = (topic.partitions for topic in response.responses)
    return ErrorCode(partition.error_code)


async def test_an_incremental_fetch_names_only_what_changed(cluster: Cluster) -> None:
    first = await fetch(cluster, asked())
    assert (first.error_code, len(first.responses)) == (0, 1)
    assert (await fetch(cluster, session=(first.session_id, 1))).responses == []
    await cluster.nodes[1].append(b"a", acks=1)
    news = await fetch(cluster, session=(first.session_id, 2))
    assert news.responses[0].partitions[0].records


async def test_what_is_on_its_way_is_not_sent_twice(cluster: Cluster) -> None:
    session_id = (await fetch(cluster, asked())).session_id
    await cluster.nodes[1].append(b"a", acks=1)
    assert (await fetch(cluster, session=(session_id, 1))).responses != []
    assert (await fetch(cluster, session=(session_id, 2))).responses == []
    await cluster.nodes[1].append(b"b", acks=1)
    again = await fetch(cluster, asked(1), session=(session_id, 3))
    assert again.responses[0].partitions[0].records


@pytest.mark.parametrize(
    ("session", "code"),
    [
        ((12345, 1), ErrorCode.FETCH_SESSION_ID_NOT_FOUND),
        ((None, 7), ErrorCode.INVALID_FETCH_SESSION_EPOCH),
    ],
)
async def test_a_session_that_does_not_go_on_is_refused(
    cluster: Cluster, session: tuple[int | None, int], code: ErrorCode
) -> None:
    opened = await fetch(cluster, asked())
    asked_id = opened.session_id if session[0] is None else session[0]
    assert (await fetch(cluster, session=(asked_id, session[1]))).error_code == code


async def test_an_earlier_life_of_the_follower_is_refused_and_a_later_one_ends_its_sessions(cluster: Cluster) -> None:
    old = await fetch(cluster, asked())
    assert (await fetch(cluster, asked(), epoch=FOLLOWER_EPOCH - 1)).error_code == ErrorCode.STALE_BROKER_EPOCH
    await fetch(cluster, asked(), epoch=FOLLOWER_EPOCH + 1)
    assert (await fetch(cluster, session=(old.session_id, 1))).error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    assert len(cluster.nodes[1].replica_sessions) == 1


@pytest.mark.parametrize(
    ("leader_epoch", "code"),
    [(-1, ErrorCode.UNKNOWN_LEADER_EPOCH), (1, ErrorCode.UNKNOWN_LEADER_EPOCH), (0, ErrorCode.NONE)],
)
async def test_only_fetches_of_the_present_term_count(cluster: Cluster, leader_epoch: int, code: ErrorCode) -> None:
    assert code_of(await fetch(cluster, asked(leader_epoch=leader_epoch))) is code


async def test_another_term_is_told_at_once(cluster: Cluster) -> None:
    session_id = (await fetch(cluster, asked())).session_id
    waiting = asyncio.ensure_future(fetch(cluster, session=(session_id, 1), wait_ms=LONG_MS))
    await asyncio.sleep(0)
    await cluster.elect(1, (1, 2), only=(1,))
    assert code_of(await asyncio.wait_for(waiting, 5)) is ErrorCode.FENCED_LEADER_EPOCH


async def test_records_end_the_wait_and_so_does_the_next_request(cluster: Cluster) -> None:
    session_id = (await fetch(cluster, asked())).session_id
    waiting = asyncio.ensure_future(fetch(cluster, session=(session_id, 1), wait_ms=LONG_MS))
    await asyncio.sleep(0)
    await cluster.nodes[1].append(b"a", acks=1)
    assert (await asyncio.wait_for(waiting, 5)).responses[0].partitions[0].records
    waiting = asyncio.ensure_future(fetch(cluster, asked(1, last_epoch=0), session=(session_id, 2), wait_ms=LONG_MS))
    await asyncio.sleep(0)
    await fetch(cluster, session=(session_id, 3))
    assert (await asyncio.wait_for(waiting, 5)).error_code == 0


async def test_a_forgotten_partition_is_silent(cluster: Cluster) -> None:
    session_id = (await fetch(cluster, asked())).session_id
    gone = ForgottenTopic(topic_id=TOPIC_ID, partitions=[0])
    await fetch(cluster, session=(session_id, 1), forgotten=(gone,))
    await cluster.nodes[1].append(b"a", acks=1)
    assert (await fetch(cluster, session=(session_id, 2))).responses == []
    assert not cluster.nodes[1].local.replica_watches


async def test_an_offset_above_the_end_or_an_unknown_epoch_is_no_acknowledgement(cluster: Cluster) -> None:
    await cluster.nodes[1].append(b"a", acks=1)
    assert code_of(await fetch(cluster, asked(7))) is ErrorCode.OFFSET_OUT_OF_RANGE
    answer = await fetch(cluster, asked(1, last_epoch=0))
    assert code_of(answer) is ErrorCode.NONE
    assert cluster.nodes[1].local.high_watermark == 1
