"""A home that was made with fewer brokers: its topics get as many copies as the larger cluster gives to new ones.

Only when it grows: later, how many copies a topic has is up to its owner and the operators. How many brokers the topics
were last spread over is kept in a file, so that a growth that was interrupted goes on at the next start.
"""

from __future__ import annotations

import re
import time
from pathlib import Path

from control_plane.engine.cluster import ClusterEngine
from control_plane.engine.factory import get_engine
from control_plane.supervisor.plan import UpOptions
from control_plane.supervisor.watch import StopRequested, Supervisor

MARKER = "topics-spread-over"
COPY_WITHIN_S = 120.0
LOOK_EVERY_S = 0.5
ENGINE_WITHIN_S = 20.0
META = "meta.properties"


def brokers_there(home: Path) -> int:
    """How many brokers have data in this home: the highest number among them."""
    names = [path.parent.name for path in home.glob(f"broker-*/{META}")]
    return max((int(found.group(1)) for name in names if (found := re.fullmatch(r"broker-(\d+)", name))), default=0)


def brokers_before(home: Path) -> int:
    """How many brokers the topics of this home are spread over; 0: there are none yet."""
    marker = home / MARKER
    if marker.exists():
        return int(marker.read_text(encoding="ascii"))
    return min(1, brokers_there(home))  # made before homes had more than one


def grow_topics(options: UpOptions, before: int, supervisor: Supervisor) -> None:
    if 0 < before < options.broker_count:
        _raise_factors(options.replication_factor, get_engine().cluster, supervisor)
    if before < options.broker_count:
        (options.home / MARKER).write_text(f"{options.broker_count}\n", encoding="ascii")


def _raise_factors(factor: int, engine: ClusterEngine, supervisor: Supervisor) -> None:
    with supervisor.progress.step(f"copying topics, so that each is on {factor} brokers"):
        moves = engine.propose_moves(replication_factor=factor, leaving=frozenset(), timeout_s=ENGINE_WITHIN_S)
        if moves:
            engine.begin_moves(moves, bytes_per_s_max=None, timeout_s=ENGINE_WITHIN_S)
        left = _wait(engine, len(moves), supervisor)
    if left:
        supervisor.progress.say(f"  {left} partitions are still being copied: the Cluster page shows how far they are")


def _wait(engine: ClusterEngine, count: int, supervisor: Supervisor) -> int:
    """How many are not done yet: a large home is served while it is copied."""
    deadline_s = time.monotonic() + COPY_WITHIN_S
    while left := len(engine.moves_under_way(timeout_s=ENGINE_WITHIN_S)):
        if supervisor.stop_count:
            raise StopRequested
        if time.monotonic() > deadline_s:
            return left
        supervisor.progress.tick(f"{count - left} of {count} partitions")
        time.sleep(LOOK_EVERY_S)
    return 0
