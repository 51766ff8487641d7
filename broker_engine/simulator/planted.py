"""Historic bugs, planted for the length of a run: a simulator that does not find one of them is the bug.

Production code has no flags for this: a method is replaced, and put back. `python -m broker_engine.simulator --planted`
prints the table.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from broker_engine.partition.core import PartitionCore
from broker_engine.partition.follower_core import FollowerCore
from broker_engine.partition.replica import ReplicaCore
from broker_engine.server.data_dir import DataDir
from broker_engine.server.local_partition import LocalPartition
from broker_engine.simulator.run import RunReport, run_seed
from broker_engine.simulator.sim_clock import SimClock
from broker_engine.simulator.sim_disk import SimDisk

SEEDS_MAX = 2_000


@dataclass(frozen=True, slots=True)
class Planted:
    name: str
    what: str
    owner: type[Any]
    attribute: str
    replacement: Any
    first_seed: int = 0
    """From here on it is found soon: for the test."""

    @contextmanager
    def in_place(self) -> Iterator[None]:
        original = self.owner.__dict__[self.attribute]
        setattr(self.owner, self.attribute, self.replacement)
        try:
            yield
        finally:
            setattr(self.owner, self.attribute, original)


@dataclass(frozen=True, slots=True)
class Finding:
    seed_count: int
    """How many seeds it took."""
    report: RunReport


def find(planted: Planted, seeds: Iterable[int], *, is_stopped: Callable[[], bool] = lambda: False) -> Finding | None:
    with planted.in_place():
        for count, seed in enumerate(seeds, start=1):
            report = run_seed(seed)
            if not report.is_ok:
                return Finding(count, report)
            if is_stopped():
                return None
    return None


# --- replication


def _no_check(self: ReplicaCore, current_leader_epoch: int) -> None:
    """KIP-320: whoever fetches is not asked which leader it means."""


def _cut_to_high_watermark(self: FollowerCore, own_end_offset: int, leader_end_offset: int) -> int:
    """KIP-101: the follower's own high watermark, which may lag behind, decides what it keeps."""
    return min(self.high_watermark, self.log_end_offset)


def _no_cut(self: FollowerCore, own_end_offset: int, leader_end_offset: int) -> int:
    return self.log_end_offset


def _caught_up_to_high_watermark(self: PartitionCore, follower: Any) -> bool:
    """The epoch's start is forgotten: a new leader's high watermark may be behind what is committed."""
    return bool(self._counted_end(follower) >= self.high_watermark)


def _acked_at_once(self: LocalPartition, end_offset: int, on_acked: Any) -> None:
    from broker_engine.errors import ErrorCode

    on_acked(ErrorCode.NONE)


def _written_end(self: PartitionCore, follower: Any) -> int:
    return int(follower.end_offset)


# --- disk


def _kept_clean_marker(self: DataDir) -> int | None:
    import json

    if not self.files.exists(".kafka_cleanshutdown"):
        return None
    return int(json.loads(self.files.read_small(".kafka_cleanshutdown"))["brokerEpoch"])


def _atomic_without_directory(self: SimDisk, path: str, data: bytes, *, is_durable: bool) -> None:
    temporary = path + ".tmp"
    self._write_temporary(temporary, data, is_durable=is_durable)
    self.rename(temporary, path)


def _atomic_without_sync(self: SimDisk, path: str, data: bytes, *, is_durable: bool) -> None:
    self._write_temporary(path + ".tmp", data, is_durable=is_durable and "quorum-state" not in path)
    self.rename(path + ".tmp", path)
    if is_durable and "quorum-state" not in path:
        self.sync_dir(path.rpartition("/")[0])


PLANTED: tuple[Planted, ...] = (
    Planted("truncate-to-hw", "a follower cuts its log to its own high watermark (KIP-101)",
            FollowerCore, "truncation_offset", _cut_to_high_watermark),
    Planted("no-truncation", "a follower keeps what its leader never had",
            FollowerCore, "truncation_offset", _no_cut),
    Planted("no-fetch-epoch", "nobody checks the leader epoch of a request (KIP-320)",
            ReplicaCore, "check_leader_epoch", _no_check),
    Planted("no-epoch-start", "a follower joins the ISR before it has the epoch's start",
            PartitionCore, "_has_caught_up", _caught_up_to_high_watermark),
    Planted("hw-by-isr", "the high watermark goes by the ISR, not by the maximal one (KIP-497)",
            PartitionCore, "maximal_isr", property(lambda self: self.isr)),
    Planted("hw-by-written", "fsync mode counts what a follower has not synced",
            PartitionCore, "_counted_end", _written_end),
    Planted("ack-at-once", "acks=all is answered after the leader's append",
            LocalPartition, "when_acked", _acked_at_once),
    Planted("latest-too-early", "a new leader tells the end before it knows what is committed",
            PartitionCore, "knows_latest_offset", property(lambda self: True)),
    Planted("clean-marker-kept", "the marker of a clean stop outlives the next crash",
            DataDir, "take_clean_marker", _kept_clean_marker),
    Planted("rename-not-synced", "a rename is not followed by a sync of its directory",
            SimDisk, "write_atomic", _atomic_without_directory),
    Planted("vote-not-synced", "a vote is told before it is on disk",
            SimDisk, "write_atomic", _atomic_without_sync),
    Planted("wall-clock-timers", "sessions and time-outs go by the wall clock",
            SimClock, "monotonic_ms", SimClock.now_ms),
)  # fmt: skip
