"""A controller that is asked to stop, and whose metadata log fails just then: it ends, and others take over."""

from __future__ import annotations

import asyncio
import dataclasses

import pytest

from broker_engine.errors import BrokerError, ErrorCode
from broker_engine.simulator.run import Run
from broker_engine.simulator.swarm import draw

ENDS_WITHIN_S = 15.0
"""Its connections get ten seconds for their answers. It used to wait for ever, for an answer of its own."""


class FailWhileStopping(Run):
    took_s: float

    async def _chaos(self) -> None:
        node = next(node for node in self.cluster.brokers if node.broker is not None and node.broker.metadata.is_leader)
        assert node.broker is not None
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(node.broker.metadata.node.log, "append", _no_room)
            self.cluster.is_shaken = True
            node.stop()
            asked_s = self.loop.now_s
            while node.is_running and self.loop.now_s < asked_s + 100:  # noqa: ASYNC110
                await asyncio.sleep(0.1)
            self.took_s = self.loop.now_s - asked_s
        node.start()


def _no_room(*_: object) -> None:
    raise BrokerError(ErrorCode.KAFKA_STORAGE_ERROR, "the disk is full")


def test_a_controller_whose_disk_fills_up_while_it_stops_does_not_wait_for_its_own_answer() -> None:
    run = FailWhileStopping(dataclasses.replace(draw(2, node_count=3), chaos_s=1.0), ())
    report = run.go()
    assert report.violations == []
    assert any("nothing is handed over" in line for line in report.lines)
    assert run.took_s < ENDS_WITHIN_S
