"""A process that is killed when only its exit is left of a clean stop: the marker tells the truth, and is believed."""

from __future__ import annotations

import asyncio
import dataclasses

from broker_engine.server.data_dir import CLEAN_MARKER
from broker_engine.simulator.disk_faults import DiskCall
from broker_engine.simulator.run import Run
from broker_engine.simulator.sim_process import ProcessDied
from broker_engine.simulator.swarm import draw


class KilledBehindTheMarker(Run):
    async def _chaos(self) -> None:
        self.cluster.is_shaken = True
        node = next(iter(self.cluster.brokers))

        def kill_behind_marker(call: DiskCall, path: str) -> None:
            if node.disk.exists(CLEAN_MARKER):
                node.kill()
                raise ProcessDied

        node.disk.faults.on_call = kill_behind_marker
        node.stop()
        while node.is_running:  # noqa: ASYNC110 - nobody signals a death
            await asyncio.sleep(0.1)
        node.disk.faults.on_call = None
        node.start()
        assert node.was_clean, "as the broker itself will say"


def test_a_broker_that_is_killed_behind_its_marker_comes_back_as_from_a_clean_stop() -> None:
    report = KilledBehindTheMarker(dataclasses.replace(draw(2, node_count=3), chaos_s=1.0), (), is_traced=True).go()
    assert report.violations == []
    assert any("node1.2" in line and "after a clean stop" in line for line in report.lines)
    assert not any("node1.1" in line and "stopped cleanly" in line for line in report.lines)
