"""What is done to a cluster while clients work. When `play` returns every node runs and links are whole.

Whether the cluster has recovered by then is another question; a scene's patience decides whether the next one waits.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from random import Random
from typing import ClassVar

from broker_engine.simulator.history.rows import Partition
from tests.chaos.cluster import Cluster
from tests.chaos.crew import Crew

POLL_S = 0.05
REPLACED_S_MAX = 12.0
"""Longer than a broker's session: whoever can be replaced has been by then."""


@dataclass(slots=True)
class Scene:
    cluster: Cluster
    random: Random
    partitions: tuple[Partition, ...]
    crew: Crew
    problems: list[str] = field(default_factory=list)
    """What broke a promise, though the cluster went on."""

    @property
    def topics(self) -> list[str]:
        return sorted({topic for topic, _ in self.partitions})

    def pick(self, role: str) -> int:
        """A node of that role, as it is now; anybody where nobody has it."""
        others = list(self.cluster.nodes)
        leader = self.cluster.leader_of(self.random.choice(self.partitions)) if role != "controller" else -1
        if role == "controller":
            chosen = self.cluster.controller_id()
        elif role == "leader":
            chosen = leader
        else:
            chosen = self.random.choice([node for node in others if node != leader] or others)
        return chosen if chosen in self.cluster.nodes else self.random.choice(others)

    def wait(self, shortest_s: float, longest_s: float) -> float:
        """The time that a fault lasts is what is drawn, not a condition to wait for."""
        seconds = self.random.uniform(shortest_s, longest_s)
        time.sleep(seconds)
        return seconds

    def outlast(self, victim: int) -> float:
        """Lets a fault of one node last: a moment, in which nobody may notice, or until the others do without it."""
        started = time.monotonic()
        if self.random.random() < 0.5:
            self.wait(0.1, 2.0)
        else:
            while time.monotonic() - started < REPLACED_S_MAX and not self._is_replaced(victim):
                time.sleep(POLL_S)
            self.wait(0.0, 0.5)
        return time.monotonic() - started

    def _is_replaced(self, victim: int) -> bool:
        """As one of the others knows it: it leads nothing, and is in sync nowhere."""
        others = [node_id for node_id in self.cluster.running if node_id != victim]
        known = [state for topic in self.topics for state in self.cluster.all_known_to(others[0], topic)]
        return bool(known) and all(state.leader != victim and victim not in state.isr for state in known)


class Fault(ABC):
    name: ClassVar[str]
    brokers_min: ClassVar[int] = 1
    may_answer_stale: ClassVar[bool] = False
    """A leader that was deposed without noticing may answer ListOffsets for a while."""

    @abstractmethod
    def play(self, scene: Scene) -> str:
        """What was done, in a few words."""


class Kill(Fault):
    name = "kill"

    def play(self, scene: Scene) -> str:
        role = scene.random.choice(["leader", "leader", "follower", "controller"])
        node_id = scene.pick(role)
        scene.cluster.kill(node_id)
        down_s = scene.wait(0.0, 1.0)
        scene.cluster.launch([node_id])
        return f"SIGKILL {role} {node_id}, back after {down_s:.1f} s"


class Stop(Fault):
    name = "stop"
    brokers_min = 3
    may_answer_stale = True

    def play(self, scene: Scene) -> str:
        role = scene.random.choice(["leader", "leader", "follower", "controller"])
        node = scene.cluster.nodes[scene.pick(role)]
        node.pause()
        try:
            stopped_s = scene.outlast(node.node_id)
        finally:
            node.resume()
        return f"SIGSTOP {role} {node.node_id} for {stopped_s:.1f} s"


class Terminate(Fault):
    name = "term"

    def play(self, scene: Scene) -> str:
        role = scene.random.choice(["leader", "follower", "controller"])
        node_id = scene.pick(role)
        started = time.monotonic()
        code = scene.cluster.terminate(node_id)
        took_s = time.monotonic() - started
        assert code == 0, f"node {node_id} ended with {code}:\n{scene.cluster.nodes[node_id].log_tail()}"
        scene.cluster.launch([node_id])
        return f"SIGTERM {role} {node_id}, gone in {took_s:.1f} s"


class Rolling(Fault):
    name = "rolling"

    def play(self, scene: Scene) -> str:
        for node_id in scene.cluster.nodes:
            code = scene.cluster.terminate(node_id)
            assert code == 0, f"node {node_id} ended with {code}:\n{scene.cluster.nodes[node_id].log_tail()}"
            scene.cluster.launch([node_id])
            scene.cluster.wait_until_whole(scene.topics)
        return "rolling restart"


class Whole(Fault):
    name = "whole"

    def play(self, scene: Scene) -> str:
        """All at once: the last in-sync replicas of every partition are among them."""
        order = list(scene.cluster.nodes)
        scene.random.shuffle(order)
        for node_id in order:
            scene.cluster.kill(node_id)
        scene.wait(0.0, 0.5)
        started = time.monotonic()
        scene.cluster.launch(order)
        return f"SIGKILL of every node, all ready {time.monotonic() - started:.1f} s after their start"


class Wipe(Fault):
    name = "wipe"
    brokers_min = 3

    def play(self, scene: Scene) -> str:
        scene.cluster.wait_until_whole(scene.topics)  # the others must hold everything
        node_id = scene.pick(scene.random.choice(["leader", "follower", "controller"]))
        scene.cluster.kill(node_id)
        scene.cluster.nodes[node_id].wipe()
        scene.cluster.launch([node_id])
        scene.cluster.wait_until_whole(scene.topics)
        return f"SIGKILL {node_id}, its directory wiped"


class Cut(Fault):
    name = "cut"
    brokers_min = 3
    may_answer_stale = True

    def play(self, scene: Scene) -> str:
        cluster, victim = scene.cluster, scene.pick(scene.random.choice(["leader", "follower", "controller"]))
        others = [node_id for node_id in cluster.nodes if node_id != victim]
        shape = scene.random.choice(["alone", "alone", "deaf", "dumb", "one link", "flapping"])
        try:
            for _ in range(3 if shape == "flapping" else 1):
                self._cut(cluster, shape, victim, others)
                is_whole_cut = shape in ("alone", "dumb")  # else it may never be replaced
                seconds = scene.outlast(victim) if is_whole_cut else scene.wait(0.5, 3.0)
                cluster.heal()
                scene.wait(0.0, 0.5)
        finally:
            cluster.heal()
        return f"cut {victim} {shape}, {seconds:.1f} s"

    def _cut(self, cluster: Cluster, shape: str, victim: int, others: list[int]) -> None:
        reached = others[:1] if shape == "one link" else others
        for other in reached:
            if shape != "deaf":
                cluster.cut(victim, other)
            if shape != "dumb":
                cluster.cut(other, victim)


class Slow(Fault):
    name = "slow"
    brokers_min = 3

    def play(self, scene: Scene) -> str:
        victim, delay_s = scene.pick("follower"), scene.random.uniform(0.02, 0.3)
        for pair, link in scene.cluster.links.items():
            if victim in pair:
                link.set(delay_s=delay_s)
        scene.wait(1.0, 3.0)
        scene.cluster.heal()
        return f"every byte of {victim} {delay_s * 1000:.0f} ms late"


class Reset(Fault):
    name = "reset"
    brokers_min = 3

    def play(self, scene: Scene) -> str:
        victim = scene.pick(scene.random.choice(["leader", "controller"]))
        for _ in range(scene.random.randint(1, 5)):
            for pair, link in scene.cluster.links.items():
                if victim in pair:
                    link.reset()
            scene.wait(0.0, 0.3)
        return f"every connection of {victim} reset"


class ClientKill(Fault):
    """A member of a group or a transformer, in the middle of what it does; a new process takes its place."""

    name = "client"

    def play(self, scene: Scene) -> str:
        names = [scene.crew.kill_one(scene.random) for _ in range(scene.random.choice([1, 1, 2]))]
        scene.wait(0.5, 2.0)
        return f"SIGKILL of the client{'s' if len(names) > 1 else ''} {', '.join(names)}"


class Zombie(Fault):
    """A transformer does not notice that another one has its transactional id: what it commits then is refused."""

    name = "zombie"

    def play(self, scene: Scene) -> str:
        return scene.crew.replace_one(scene.random)


FAULTS: dict[str, type[Fault]] = {
    fault.name: fault for fault in (Kill, Stop, Terminate, Rolling, Whole, Wipe, Cut, Slow, Reset, ClientKill, Zombie)
}
"""Those that need no preparation."""
