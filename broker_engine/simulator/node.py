"""One node: a host with a disk and a clock, and the production Broker in a process on it, life after life."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from pathlib import Path

from broker_engine.config import BrokerConfig
from broker_engine.server.broker import Broker
from broker_engine.server.data_dir import CLEAN_MARKER
from broker_engine.server.surroundings import Surroundings
from broker_engine.simulator.disk_faults import DiskCall
from broker_engine.simulator.sim_clock import SimClock, SimRandomness
from broker_engine.simulator.sim_disk import SimDisk
from broker_engine.simulator.sim_loop import SimLoop
from broker_engine.simulator.sim_net import SimDialer, SimDoor, SimNet
from broker_engine.simulator.sim_process import Process, ProcessDied
from broker_engine.simulator.sim_store import SimStore

CLUSTER_SECRET = "a-secret-that-everybody-in-the-simulation-knows"  # noqa: S105 - there is nothing to protect
CLIENT_PORT = 9092
CONTROLLER_PORT = 9093


def host_of(node_id: int) -> str:
    """Loopback addresses: a broker lets nobody in from elsewhere without TLS."""
    return f"127.0.0.{node_id}"


class SimNode:
    def __init__(
        self, loop: SimLoop, net: SimNet, node_id: int, settings: Mapping[str, str], *, clock_rate: float = 1.0
    ) -> None:
        self.id = node_id
        self.name = f"node{node_id}"
        self.host = host_of(node_id)
        self.settings = dict(settings)
        self.disk_delay_s = 0.0005
        self._loop = loop
        self._net = net
        self.clock = SimClock(loop, monotonic_start_ms=node_id * 1_000_000, rate=clock_rate)
        self.disk = SimDisk(f"{loop.seed}/{self.name}/disk", now_ms=self.clock.now_ms)
        self.broker: Broker | None = None
        """Of the present life, while there is one."""
        self.process: Process | None = None
        self.life = 0
        self.was_clean = True
        """Its last life before this one ended by a clean stop."""
        self._has_stopped_cleanly = True
        self._resumed_at_s = float("-inf")
        self.scrubbed_life = 0
        self.is_ready = False
        self.exit_error: BaseException | None = None
        """Why the last life ended by itself."""
        self.on_started: Callable[[SimNode], None] | None = None
        self._task: asyncio.Task[None] | None = None

    @property
    def is_running(self) -> bool:
        return self.process is not None and self.process.is_alive and self._task is not None and not self._task.done()

    @property
    def is_paused(self) -> bool:
        return self.process is not None and self.process.is_paused

    # --- life and death

    def start(self) -> None:
        """A new process on whatever the disk holds."""
        assert not self.is_running, f"{self.name} runs"
        self.life += 1
        self.was_clean, self._has_stopped_cleanly = self._has_stopped_cleanly, False
        self.exit_error = None
        self.is_ready = False
        self._net.switch_on(self.host)
        self.process = self._loop.new_process(f"{self.name}.{self.life}")
        self.process.executor_delay_s = self.disk_delay_s
        self.process.clock_rate = self.clock.rate
        self.process.is_watched = True
        self._task = self._loop.spawn(self.process, self._live(self.process), self.name)

    async def _live(self, process: Process) -> None:
        broker = Broker(self._config(), Path("/data") / self.name, self._surroundings(process))
        self.broker = broker
        try:
            await broker.run(self._on_ready)
            self._has_stopped_cleanly = self.process is process
        except Exception as error:
            self.exit_error = error
        if self.process is process:
            self._end()
            self._net.drop_host(self.host, is_silent=False)
            self._loop.kill(process)

    def _on_ready(self, broker: Broker) -> None:
        self.is_ready = True
        if self.on_started is not None:
            self.on_started(self)

    def _config(self) -> BrokerConfig:
        return BrokerConfig.load(set_values={**self.settings, "node.id": str(self.id)})

    def _surroundings(self, process: Process) -> Surroundings:
        store = SimStore(self.disk)
        return Surroundings(
            clock=self.clock,
            randomness=SimRandomness(f"{self._loop.seed}/{self.name}/{self.life}"),
            open_store=lambda path: store,
            listen=SimDoor(self._net, process),
            make_dialer=lambda counters: SimDialer(self._net, process, self.host),
            load_cluster_secret=lambda path: CLUSTER_SECRET,
            sleep_in_thread=lambda seconds: None,
            settle_memory=lambda: None,
            watch_loop=nullcontext,
        )

    def stop(self) -> None:
        """SIGTERM."""
        if self.is_running and self.broker is not None and self.process is not None:
            self._loop.run_as(self.process, self.broker.request_stop)

    def kill(self) -> None:
        """SIGKILL: what was written is in the page cache."""
        self._die(is_silent=False)
        self.disk.kill()

    def lose_power(self) -> None:
        self._die(is_silent=True)
        self.disk.lose_power()

    def wipe(self) -> None:
        """A new, empty disk in the place of the old one."""
        assert not self.is_running, "a disk is changed while the machine is off"
        self.disk = SimDisk(f"{self._loop.seed}/{self.name}/{self.life}/disk", now_ms=self.clock.now_ms)

    def kill_at_disk_call(self, after_count: int, *, is_power_lost: bool) -> None:
        """Die in the midst of whatever makes the `after_count`th call of the disk from now."""
        process, left = self.process, after_count

        def count_down(call: DiskCall, path: str) -> None:
            nonlocal left
            if self.process is not process or self.process is None:
                raise ProcessDied
            left -= 1
            if left <= 0:
                self.lose_power() if is_power_lost else self.kill()
                raise ProcessDied

        self.disk.faults.on_call = count_down

    def _die(self, *, is_silent: bool) -> None:
        process = self.process
        if process is not None:
            self._loop.kill(process)
        self._end()
        self._net.drop_host(self.host, is_silent=is_silent)

    def _end(self) -> None:
        if self.broker is not None and not self.broker.has_joined:
            self._has_stopped_cleanly = self.was_clean  # it was too short a life to change anything
        elif self.broker is not None and self.broker.stop_requested.is_set() and self.disk.exists(CLEAN_MARKER):
            self._has_stopped_cleanly = True  # killed behind the last step of a clean stop: all is on the disk
        self.broker = self.process = self._task = None
        self.is_ready = False
        self.disk.kill()

    def sealed_segment(self, number: int) -> str | None:
        """One of those of replicated partitions, of which others have copies."""
        locals_ = [] if self.broker is None or not self.is_ready else list(self.broker.partitions.all())
        paths = [
            f"{local.log.directory}/{base:020}.log"
            for local in locals_
            for base in local.log.segment_bases[:-1]
            if len(local.core.isr) > 1 and local.log.log_start_offset <= base < local.core.high_watermark
        ]
        return paths[number % len(paths)] if paths else None

    def scrub(self) -> None:
        """As the scrubber does once a day."""
        if self.is_running and self.is_ready and self.broker is not None and self.process is not None:
            self.scrubbed_life = self.life
            self._loop.spawn(self.process, self.broker.scrubber.verify_all(), "scrub")

    def pause(self) -> None:
        if self.process is not None:
            self._loop.pause(self.process)

    def resume(self) -> None:
        if self.process is not None and self.process.is_paused:
            self._resumed_at_s = self._loop.now_s
            self._loop.resume(self.process)

    def was_paused_since(self, time_s: float) -> bool:
        return self.is_paused or self._resumed_at_s >= time_s
