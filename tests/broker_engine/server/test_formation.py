"""Which cluster a blank node belongs to, by what the others say."""

from __future__ import annotations

import asyncio
from typing import Any
from uuid import uuid4

import pytest

from broker_engine.client.errors import ConnectionFailed
from broker_engine.clock import SystemClock
from broker_engine.config import ConfigError
from broker_engine.server.formation import Formation, Identity
from broker_engine.wire.messages.internal_identify import IdentifyResponse


class Others:
    """Nodes that answer as a test says; who is not in `answers` cannot be reached."""

    def __init__(self, **answers: IdentifyResponse) -> None:
        self.answers = {int(name.removeprefix("node_")): answer for name, answer in answers.items()}
        self.asked = asyncio.Event()

    async def ask(self, node_id: int, *_: Any, **__: Any) -> IdentifyResponse:
        await asyncio.sleep(0)
        self.asked.set()
        if node_id not in self.answers:
            raise ConnectionFailed(f"node {node_id}", "refused")
        return self.answers[node_id]

    def address_of(self, node_id: int) -> tuple[str, int]:
        return f"host-{node_id}", 9095


def blank(node_id: int, *, is_controller: bool = True) -> IdentifyResponse:
    return IdentifyResponse(node_id=node_id, is_blank=True, is_controller=is_controller)


def member(node_id: int, cluster_id: str) -> IdentifyResponse:
    return IdentifyResponse(node_id=node_id, cluster_id=cluster_id)


def formation(me: int, others: Others, *, is_controller: bool = True) -> Formation:
    identity = Identity(me, "", uuid4(), uuid4(), is_controller)
    return Formation(identity, (1, 2, 3), others, SystemClock())  # type: ignore[arg-type]


async def still_waits(waiting: asyncio.Task[str | None], others: Others) -> bool:
    others.asked.clear()
    await others.asked.wait()
    await asyncio.sleep(0)
    return not waiting.done()


async def test_the_lowest_of_blank_nodes_founds() -> None:
    assert await formation(1, Others(node_2=blank(2), node_3=blank(3))).find_cluster() is None


async def test_the_others_wait_for_its_id() -> None:
    others = Others(node_1=blank(1), node_3=blank(3))
    waiting = asyncio.ensure_future(formation(2, others).find_cluster())
    assert await still_waits(waiting, others)
    others.answers[1] = member(1, "new")
    assert await waiting == "new"


async def test_a_node_that_cannot_be_reached_may_have_a_cluster() -> None:
    others = Others(node_2=blank(2))
    waiting = asyncio.ensure_future(formation(1, others).find_cluster())
    assert await still_waits(waiting, others)
    others.answers[3] = member(3, "old")
    assert await waiting == "old"


async def test_one_member_is_enough_to_know() -> None:
    assert await formation(1, Others(node_3=member(3, "old"))).find_cluster() == "old"


async def test_a_node_that_is_no_controller_does_not_found() -> None:
    others = Others(node_1=blank(1, is_controller=False), node_3=blank(3))
    assert await formation(2, others).find_cluster() is None
    others = Others(node_2=blank(2), node_3=blank(3))
    waiting = asyncio.ensure_future(formation(1, others, is_controller=False).find_cluster())
    assert await still_waits(waiting, others)
    waiting.cancel()


async def test_members_of_two_clusters_are_one_too_many() -> None:
    with pytest.raises(ConfigError, match="different clusters: new, old"):
        await formation(1, Others(node_2=member(2, "old"), node_3=member(3, "new"))).find_cluster()


async def test_an_address_that_is_another_nodes_is_said() -> None:
    with pytest.raises(ConfigError, match="host-2:9095 is node 7, not node 2"):
        await formation(1, Others(node_2=blank(7))).find_cluster()
