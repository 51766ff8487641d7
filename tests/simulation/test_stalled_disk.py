"""A disk that stands still for 25 s: others take over, nothing is broken, and the broker comes back by itself."""

from __future__ import annotations

import dataclasses

from broker_engine.simulator.run import play
from broker_engine.simulator.schedule import Fault
from broker_engine.simulator.swarm import draw

STALL = Fault(at_s=1.0, kind="stall_disk", node=1, for_s=25.0)


def test_a_broker_whose_disk_stands_still_is_drained_and_comes_back() -> None:
    report = play(dataclasses.replace(draw(2, node_count=3), chaos_s=32.0), (STALL,))
    assert report.violations == []
    told = [line for line in report.lines if "node1.1" in line and ("stalled_disk" in line or "lifecycle" in line)]
    assert ["others take over" in told[0], "fenced this broker" in told[1], "answers again" in told[2]] == [True] * 3


def test_a_cluster_of_one_goes_on_as_well_as_it_can() -> None:
    report = play(dataclasses.replace(draw(2, node_count=1), chaos_s=32.0), (STALL,))
    assert report.violations == []
    assert any("only it can lead" in line for line in report.lines)
    assert not any("fenced this broker" in line for line in report.lines)
