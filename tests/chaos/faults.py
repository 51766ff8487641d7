"""What is done to a cluster while clients work. When `play` returns every node runs and links are whole.

Whether the cluster has recovered by then is another question; a scene's patience decides whether the next one waits.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from abc import ABC, abstractmethod
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import ClassVar

from broker_engine.simulator.history.rows import Partition
from tests.chaos.cluster import Cluster

FAKETIME_LIBRARY = Path("/usr/lib/x86_64-linux-gnu/faketime/libfaketimeMT.so.1")
TMPFS_BYTES = 256 << 20


@dataclass(slots=True)
class Scene:
    cluster: Cluster
    random: Random
    partitions: tuple[Partition, ...]

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
        down_s = scene.wait(0.0, 1.5)
        scene.cluster.launch([node_id])
        return f"SIGKILL {role} {node_id}, back after {down_s:.1f} s"


class Stop(Fault):
    name = "stop"
    may_answer_stale = True
    longest_s: ClassVar[float] = 15.0

    def play(self, scene: Scene) -> str:
        role = scene.random.choice(["leader", "leader", "follower", "controller"])
        node = scene.cluster.nodes[scene.pick(role)]
        node.pause()
        try:
            stopped_s = scene.wait(1.0, self.longest_s)
        finally:
            node.resume()
        return f"SIGSTOP {role} {node.node_id} for {stopped_s:.1f} s"


class ShortStop(Stop):
    longest_s = 3.0


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
        scene.cluster.launch(order)
        return "SIGKILL of every node"


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
                seconds = scene.wait(1.0, 3.0 if shape == "flapping" else 12.0)
                cluster.heal()
                scene.wait(0.0, 1.0)
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
        scene.wait(1.0, 5.0)
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


class DiskFull(Fault):
    """One node's directory is a tmpfs of 256 MiB; see `mount_small_disk`."""

    name = "full"

    def __init__(self, node_id: int) -> None:
        self._node_id = node_id

    def play(self, scene: Scene) -> str:
        folder = scene.cluster.nodes[self._node_id].data_dir
        ballast = folder / "ballast"
        try:
            with ballast.open("wb") as file:
                self._fill(file.fileno(), folder)
            seconds = scene.wait(2.0, 6.0)
        finally:
            ballast.unlink()
        scene.cluster.wait_until_whole(scene.topics)
        return f"disk of {self._node_id} full for {seconds:.1f} s"

    def _fill(self, descriptor: int, folder: Path) -> None:
        free_bytes = shutil.disk_usage(folder).free
        os.posix_fallocate(descriptor, 0, max(1, free_bytes - (1 << 16)))


def mount_small_disk(folder: Path) -> bool:
    """Needs root; False without."""
    folder.mkdir(parents=True, exist_ok=True)
    if os.geteuid() != 0:
        return False
    command = ["mount", "-t", "tmpfs", "-o", f"size={TMPFS_BYTES}", "tmpfs", str(folder)]
    return subprocess.run(command, check=False, capture_output=True).returncode == 0


def unmount(folder: Path) -> None:
    subprocess.run(["umount", "-l", str(folder)], check=False, capture_output=True)


class ClockJump(Fault):
    """The wall clock of one node jumps by libfaketime; its monotonic clock goes on.

    By less than the retention time: a clock that is further ahead makes every record old, here as in Kafka.
    """

    name = "clock"

    def play(self, scene: Scene) -> str:
        node_id = scene.pick("leader")
        jump_s = scene.random.choice([-3_600, 3_600, -86_400, 86_400])
        self._set(scene, node_id, jump_s)
        scene.wait(3.0, 8.0)
        self._set(scene, node_id, 0)
        return f"clock of {node_id} by {jump_s:+d} s and back"

    def _set(self, scene: Scene, node_id: int, jump_s: int) -> None:
        path = Path(scene.cluster.environment[node_id]["FAKETIME_TIMESTAMP_FILE"])
        path.write_text(f"{jump_s:+d}\n")


def clock_environment(folder: Path, node_count: int) -> dict[int, dict[str, str]]:
    """What makes a node's wall clock one that jumps."""
    environment = {}
    for node_id in range(1, node_count + 1):
        path = folder / f"clock-{node_id}"
        path.write_text("+0\n")
        environment[node_id] = {
            "LD_PRELOAD": str(FAKETIME_LIBRARY),
            "FAKETIME_TIMESTAMP_FILE": str(path),
            "FAKETIME_CACHE_DURATION": "1",
            "FAKETIME_DONT_FAKE_MONOTONIC": "1",
        }
    return environment


FAULTS: dict[str, type[Fault]] = {
    fault.name: fault for fault in (Kill, Stop, Terminate, Rolling, Whole, Wipe, Cut, Slow, Reset)
}
"""Those that need no preparation."""
