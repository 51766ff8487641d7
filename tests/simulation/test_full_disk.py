"""A disk that is full for ten seconds: what is tried again every second is complained about once."""

from __future__ import annotations

import dataclasses

from broker_engine.simulator.run import play
from broker_engine.simulator.schedule import Fault
from broker_engine.simulator.swarm import draw

FULL = Fault(at_s=1.0, kind="full_disk", node=1, for_s=10.0)


def test_telemetry_that_has_no_room_says_so_once() -> None:
    swarm = draw(2, node_count=3)
    settings = {**swarm.settings, "telemetry.interval.ms": "1000"}
    report = play(dataclasses.replace(swarm, settings=settings, chaos_s=14.0), (FULL,))
    assert report.violations == []
    told = [line for line in report.lines if "node1.1" in line and "telemetry is not written" in line]
    assert len(told) == 1
