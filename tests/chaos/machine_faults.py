"""Faults of the machine under a broker, which need preparation: its disk is full, its wall clock jumps.

Disks: each node's data directory is a tmpfs of limited size (needs root). Clocks: libfaketime (Debian: faketime) shifts
the wall clock of one process and leaves its monotonic clock alone; time namespaces cannot do that, they shift only the
monotonic ones. So the broker runs as it is, without a seam of its own.
"""

from __future__ import annotations

import errno
import os
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.chaos.faults import Fault, Scene
from tests.chaos.node import Node

FAKETIME_LIBRARY = Path("/usr/lib/x86_64-linux-gnu/faketime/libfaketimeMT.so.1")
DISK_BYTES = 192 << 20
_CHUNK = bytes(1 << 20)
_CRUMB = bytes(1 << 12)


class DiskFull(Fault):
    """Of one node, or of all at once; to the last byte, or so that only the broker's floor is reached.

    Brokers outlive it (F12: recovery without a restart). One that ended is a problem; it is started again, so that the
    act goes on and shows what else came of it.
    """

    name = "full"

    def play(self, scene: Scene) -> str:
        nodes, victims = scene.cluster.nodes, self._victims(scene)
        kept_bytes = scene.random.choice([0, 0, 1 << 20])
        ballasts = [nodes[node_id].data_dir / "ballast" for node_id in victims]
        try:
            for ballast in ballasts:
                fill(ballast, kept_bytes)
            seconds = scene.wait(1.5, 5.0)
        finally:
            for ballast in ballasts:
                ballast.unlink()
        ended = [node_id for node_id in nodes if not nodes[node_id].is_running]
        scene.problems += [ended_text(nodes[node_id]) for node_id in ended]
        for node_id in ended:
            scene.cluster.kill(node_id)
        scene.cluster.launch(ended)
        scene.cluster.wait_until_whole(scene.topics)
        started = f", {ended} ended and were started again" if ended else ""
        return f"disk of {victims} full but for {kept_bytes} bytes for {seconds:.1f} s{started}"

    def _victims(self, scene: Scene) -> list[int]:
        role = scene.random.choice(["leader", "follower", "controller", "all"])
        return list(scene.cluster.nodes) if role == "all" else [scene.pick(role)]


def ended_text(node: Node) -> str:
    return f"node {node.node_id} ended while a disk was full:\n{node.log_tail()}"


def fill(ballast: Path, kept_bytes: int) -> None:
    """Others write meanwhile: so until nothing goes in any more; then what is to stay free is given back."""
    with ballast.open("wb", buffering=0) as file:
        for chunk in (_CHUNK, _CRUMB):
            _write_until_full(file.fileno(), chunk)
        os.truncate(file.fileno(), max(0, os.fstat(file.fileno()).st_size - kept_bytes))


def _write_until_full(descriptor: int, chunk: bytes) -> None:
    try:
        while os.write(descriptor, chunk):
            pass
    except OSError as error:
        if error.errno != errno.ENOSPC:
            raise


@contextmanager
def small_disks(folders: Sequence[Path]) -> Iterator[bool]:
    """A file system of its own for each; False where that needs rights that are not there."""
    mounted = []
    try:
        for folder in folders:
            if not _mount(folder):
                break
            mounted.append(folder)
        yield len(mounted) == len(folders)
    finally:
        for folder in mounted:
            subprocess.run(["umount", "-l", str(folder)], check=False, capture_output=True)


def _mount(folder: Path) -> bool:
    folder.mkdir(parents=True, exist_ok=True)
    command = ["mount", "-t", "tmpfs", "-o", f"size={DISK_BYTES}", "tmpfs", str(folder)]
    return os.geteuid() == 0 and subprocess.run(command, check=False, capture_output=True).returncode == 0


class ClockJump(Fault):
    """By less than the retention time: a clock that is further ahead makes every record old, here as in Kafka."""

    name = "clock"

    def play(self, scene: Scene) -> str:
        role = scene.random.choice(["leader", "controller", "follower"])
        node_id = scene.pick(role)
        jump_s = scene.random.choice([-3_600, 3_600, -86_400, 86_400])
        is_killed = scene.random.random() < 0.3
        set_clock(scene, node_id, jump_s)
        try:
            scene.wait(1.5, 5.0)
            if is_killed:  # what it wrote with a wrong clock is what it starts with
                scene.cluster.kill(node_id)
                scene.cluster.launch([node_id])
        finally:
            set_clock(scene, node_id, 0)
        also = ", killed meanwhile" if is_killed else ""
        return f"clock of {role} {node_id} by {jump_s:+d} s and back{also}"


def set_clock(scene: Scene, node_id: int, jump_s: int) -> None:
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
