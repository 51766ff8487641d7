"""Connections from node to node, against the controller listener of a real broker process."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from broker_engine.client.errors import ConnectionFailed
from broker_engine.clock import SystemClock, SystemRandomness
from broker_engine.net.sockets import SocketDialer
from broker_engine.server.peers import Peers
from broker_engine.wire.messages.internal_identify import IdentifyRequest, IdentifyResponse
from broker_engine.wire.messages.metadata import MetadataRequest, MetadataResponse
from tests.broker_engine.broker_process import BrokerProcess
from tests.ports import own_port

ME, OTHER = 9, 1


@pytest.fixture
def other(tmp_path: Path) -> Iterator[BrokerProcess]:
    settings = {"controller.quorum.voters": f"1@127.0.0.1:{own_port()}"}
    with BrokerProcess(tmp_path / "other", settings=settings) as broker:
        yield broker


def peers_of(other: BrokerProcess, *, secret: str | None = None) -> Peers:
    host, port = other.settings["controller.quorum.voters"].partition("@")[2].split(":")
    return Peers(
        node_id=ME,
        dialer=SocketDialer(),
        clock=SystemClock(),
        randomness=SystemRandomness(),
        cluster_secret=secret or other.cluster_secret,
        find_address={OTHER: (host, int(port))}.get,
    )


async def identify(peers: Peers, *, lane: str = "test", timeout_ms: int = 5_000) -> IdentifyResponse:
    return await peers.ask(OTHER, IdentifyRequest(), IdentifyResponse, lane=lane, timeout_ms=timeout_ms)


class Losses:
    def __init__(self, peers: Peers) -> None:
        self.seen: asyncio.Queue[tuple[int, bool]] = asyncio.Queue()
        peers.on_lost.append(lambda node_id, is_refused: self.seen.put_nowait((node_id, is_refused)))

    async def next(self) -> tuple[int, bool]:
        async with asyncio.timeout(10):
            return await self.seen.get()


async def test_a_node_says_who_it_is_to_nodes_only(other: BrokerProcess) -> None:
    peers = peers_of(other)
    answers = await asyncio.gather(*(identify(peers, lane=f"lane-{number % 3}") for number in range(9)))
    assert {answer.node_id for answer in answers} == {OTHER}
    assert f"cluster={answers[0].cluster_id} " in other.ready_line
    with pytest.raises(ConnectionFailed, match="does not offer Metadata"):
        await peers.ask(OTHER, MetadataRequest(), MetadataResponse, lane="test", timeout_ms=1_000)
    await peers.close()


async def test_the_wrong_secret_is_not_let_in(other: BrokerProcess) -> None:
    peers = peers_of(other, secret="x" * 43)
    with pytest.raises(ConnectionFailed):
        await identify(peers)
    await peers.close()


async def test_a_killed_node_is_refused_and_found_again_when_it_is_back(other: BrokerProcess) -> None:
    peers = peers_of(other)
    losses = Losses(peers)
    await identify(peers)
    await identify(peers, lane="second")
    other.kill()
    assert await losses.next() == (OTHER, True)
    assert await peers.probe(OTHER) == "refused"
    with pytest.raises(ConnectionFailed):
        await identify(peers, timeout_ms=200)
    other.start()
    assert await peers.probe(OTHER) == "alive"
    assert (await identify(peers)).node_id == OTHER
    await peers.close()


async def test_a_killed_node_counts_as_gone_for_a_moment_only(other: BrokerProcess) -> None:
    """So that clients are not sent to a dead leader before the controller has spoken, nor kept from a living one."""
    peers = peers_of(other)
    losses = Losses(peers)
    await identify(peers)
    assert not peers.is_gone(OTHER)
    other.kill()
    assert await losses.next() == (OTHER, True)
    assert peers.is_gone(OTHER)
    other.start()
    await identify(peers)
    assert not peers.is_gone(OTHER)
    await peers.close()


async def test_a_stopped_node_is_silent_and_not_refused(other: BrokerProcess) -> None:
    peers = peers_of(other)
    losses = Losses(peers)
    await identify(peers)
    os.kill(other.pid, signal.SIGSTOP)
    try:
        with pytest.raises(ConnectionFailed):
            await identify(peers, timeout_ms=300)
        assert await losses.next() == (OTHER, False)
    finally:
        os.kill(other.pid, signal.SIGCONT)
    assert (await identify(peers)).node_id == OTHER
    await peers.close()


async def test_a_node_without_an_address_cannot_be_asked(other: BrokerProcess) -> None:
    peers = peers_of(other)
    with pytest.raises(ConnectionFailed, match="not known"):
        await peers.ask(7, IdentifyRequest(), IdentifyResponse, lane="test", timeout_ms=100)
    await peers.close()
