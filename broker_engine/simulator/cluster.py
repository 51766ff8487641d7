"""All nodes of a simulated cluster, and what can be done to them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from broker_engine.simulator.disk_faults import DiskCall
from broker_engine.simulator.node import SimNode
from broker_engine.simulator.schedule import Fault
from broker_engine.simulator.sim_loop import SimLoop
from broker_engine.simulator.sim_net import SimNet
from broker_engine.simulator.swarm import Swarm

_MIND_S = 0.1
_RESTART_AFTER_S = 0.5
"""A process that ended by itself is started again, as a supervisor would."""
_ROOM_BYTES = 6_000

HARMLESS = frozenset({"clock", "elect", "elect_unclean", "reassign", "churn"})
"""Nobody may lose its session by these."""

AdminOperation = Callable[[Fault], Awaitable[None]]


class SimCluster:
    def __init__(self, loop: SimLoop, swarm: Swarm) -> None:
        self.loop = loop
        self.swarm = swarm
        self.net = SimNet(loop, loop.seed, latency_s=swarm.latency_s)
        self.net.split_ratio = swarm.split_ratio
        self.nodes = {number: self._new_node(number) for number in swarm.node_ids}
        self.brokers = [self.nodes[number] for number in swarm.broker_ids]
        """Those that hold partitions, and that clients know."""
        self.admin: AdminOperation | None = None
        """Does what only a client can do: elections, reassignments, topics that come and go."""
        self.lines: list[str] = []
        """What happened to the nodes, for people."""
        self.exits: list[str] = []
        """Why nodes ended by themselves."""
        self.wiped_nodes: dict[int, bool] = {}
        self.is_formed = False
        """All nodes are up, the topics are there: from now on things happen to it."""
        self.is_healed = False
        self.is_shaken = False
        """Something was done that may cost a broker its session."""
        self._down_until_s = dict.fromkeys(self.nodes, 0.0)

    def _new_node(self, number: int) -> SimNode:
        settings, clock_rate = self.swarm.settings_of(number), self.swarm.clock_rate_of(number)
        node = SimNode(self.loop, self.net, number, settings, clock_rate=clock_rate)
        node.disk_delay_s = self.swarm.disk_delay_s_of(number)
        return node

    # --- up

    def start(self) -> None:
        for node in self.nodes.values():
            node.start()
        self.loop.spawn(self.loop.world, self._mind(), "minder")

    async def _mind(self) -> None:
        while True:
            await asyncio.sleep(_MIND_S)
            for node in self.nodes.values():
                if node.exit_error is not None:
                    self._note_exit(node)
                if self.is_healed and node.is_ready and node.scrubbed_life < node.life:
                    node.scrub()
                if not node.is_running and self.loop.now_s >= self._down_until_s[node.id]:
                    self.note(f"{node.name} starts")
                    node.disk.faults.on_call = None
                    node.start()

    def _note_exit(self, node: SimNode) -> None:
        text = f"{node.name} ended by itself: {node.exit_error!r}"
        self.note(text)
        self.exits.append(text)
        node.exit_error = None
        self._stay_down(node, _RESTART_AFTER_S)

    def _stay_down(self, node: SimNode, for_s: float) -> None:
        self._down_until_s[node.id] = max(self._down_until_s[node.id], self.loop.now_s + for_s)

    @property
    def running(self) -> list[SimNode]:
        return [node for node in self.nodes.values() if node.is_running]

    def note(self, text: str) -> None:
        self.lines.append(f"{self.loop.now_s:9.4f} {text}")

    # --- faults

    def inject(self, fault: Fault) -> None:
        self.note(f"fault: {fault}")
        self.is_shaken |= fault.kind not in HARMLESS
        self.loop.spawn(self.loop.world, self._carry_out(fault), f"fault {fault.kind}")

    async def _carry_out(self, fault: Fault) -> None:
        await getattr(self, f"_do_{fault.kind}")(fault, self.nodes[fault.node])

    async def _do_kill(self, fault: Fault, node: SimNode) -> None:
        if node.is_running:
            node.kill()
            self._stay_down(node, fault.for_s)

    async def _do_power(self, fault: Fault, node: SimNode) -> None:
        node.lose_power()
        self._stay_down(node, fault.for_s)

    async def _do_kill_at_call(self, fault: Fault, node: SimNode) -> None:
        self._stay_down(node, fault.for_s)
        node.kill_at_disk_call(fault.number, is_power_lost=False)

    async def _do_power_at_call(self, fault: Fault, node: SimNode) -> None:
        self._stay_down(node, fault.for_s)
        node.kill_at_disk_call(fault.number, is_power_lost=True)

    async def _do_power_all(self, fault: Fault, _: SimNode) -> None:
        for node in self.nodes.values():
            await self._do_power(fault, node)

    async def _do_kill_all(self, fault: Fault, _: SimNode) -> None:
        for node in self.nodes.values():
            await self._do_kill(fault, node)

    async def _do_wipe(self, fault: Fault, node: SimNode) -> None:
        node.lose_power()
        node.wipe()
        self.wiped_nodes[node.id] = True
        self._stay_down(node, fault.for_s)

    async def _do_shutdown(self, fault: Fault, node: SimNode) -> None:
        self._stay_down(node, fault.for_s)
        node.stop()

    async def _do_rolling(self, fault: Fault, _: SimNode) -> None:
        for node in self.nodes.values():
            if self.is_healed:
                return
            life = node.life
            node.stop()
            while node.is_running and node.life == life:  # noqa: ASYNC110 - virtual time
                await asyncio.sleep(_MIND_S)
            while not node.is_ready:  # noqa: ASYNC110 - virtual time
                await asyncio.sleep(_MIND_S)

    async def _do_pause(self, fault: Fault, node: SimNode) -> None:
        process = node.process
        node.pause()
        await asyncio.sleep(fault.for_s)
        if node.process is process:
            node.resume()

    async def _do_cut(self, fault: Fault, node: SimNode) -> None:
        other = self.nodes[fault.other]
        await self._cut([(node.host, other.host), (other.host, node.host)], fault.for_s)

    async def _do_cut_one_way(self, fault: Fault, node: SimNode) -> None:
        await self._cut([(node.host, self.nodes[fault.other].host)], fault.for_s)

    async def _do_isolate(self, fault: Fault, node: SimNode) -> None:
        """From the other nodes; clients still reach it."""
        others = [other.host for other in self.nodes.values() if other is not node]
        await self._cut([way for host in others for way in ((node.host, host), (host, node.host))], fault.for_s)

    async def _do_flap(self, fault: Fault, node: SimNode) -> None:
        other = self.nodes[fault.other].host
        ends_s = self.loop.now_s + fault.for_s
        while self.loop.now_s < ends_s and not self.is_healed:
            await self._cut([(node.host, other), (other, node.host)], fault.number / 1000)
            await asyncio.sleep(fault.number / 1000)

    async def _cut(self, ways: list[tuple[str, str]], for_s: float) -> None:
        for source, target in ways:
            self.net.cut(source, target)
        await asyncio.sleep(for_s)
        for source, target in ways:
            self.net.heal(source, target)

    async def _do_reset(self, fault: Fault, node: SimNode) -> None:
        """Some of its connections break, at whatever byte they are."""
        for number, stream in enumerate(list(self.net.host(node.host).streams)):
            if (fault.number >> (number % 16)) & 1:
                self.net.reset(stream)

    async def _do_slow_link(self, fault: Fault, node: SimNode) -> None:
        other = self.nodes[fault.other]
        for way in ((node.host, other.host), (other.host, node.host)):
            self.net.slow_factors[way] = float(fault.number)
        await asyncio.sleep(fault.for_s)
        for way in ((node.host, other.host), (other.host, node.host)):
            self.net.slow_factors.pop(way, None)

    async def _do_slow_disk(self, fault: Fault, node: SimNode) -> None:
        process = node.process
        if process is not None:
            process.executor_delay_s = node.disk_delay_s * fault.number
            await asyncio.sleep(fault.for_s)
            process.executor_delay_s = node.disk_delay_s

    async def _do_stall_disk(self, fault: Fault, node: SimNode) -> None:
        if node.process is not None:
            node.process.executor_stalled_until_s = self.loop.now_s + fault.for_s

    async def _do_sync_error(self, fault: Fault, node: SimNode) -> None:
        node.disk.faults.fail_next(DiskCall.SYNC)

    async def _do_full_disk(self, fault: Fault, node: SimNode) -> None:
        disk = node.disk
        disk.faults.capacity_bytes = sum(disk.used_bytes()) + fault.number % _ROOM_BYTES
        await asyncio.sleep(fault.for_s)
        disk.faults.capacity_bytes = None

    async def _do_rot(self, fault: Fault, node: SimNode) -> None:
        """A bit of some sealed segment turns, and the scrubber comes by some time later."""
        path = node.sealed_segment(fault.number)
        if path is not None:
            self.note(f"{node.name}: a bit of {path} turns, at {node.disk.flip_bit(path)}")
            await asyncio.sleep(fault.for_s)
            node.scrub()

    async def _do_clock(self, fault: Fault, node: SimNode) -> None:
        node.clock.offset_ms += fault.number

    async def _do_admin(self, fault: Fault, _: SimNode) -> None:
        if self.admin is not None:
            await self.admin(fault)

    _do_elect = _do_elect_unclean = _do_reassign = _do_churn = _do_admin

    def heal(self) -> None:
        """Everything works again; nodes that are down come up with the minder's next round."""
        self.net.heal_all()
        self.is_healed = True
        for node in self.nodes.values():
            faults = node.disk.faults
            faults.forget()
            faults.capacity_bytes, faults.on_call = None, None
            self._down_until_s[node.id] = 0.0
            node.clock.offset_ms = 0  # or it would refuse records whose time is too far ahead of its own
            node.scrubbed_life = 0  # something may have rotted since it was looked at
            if node.process is not None:
                node.process.executor_delay_s = node.disk_delay_s
                node.process.executor_stalled_until_s = 0.0
            node.resume()
        self.note("healed")
