"""Historic bugs, planted for the length of a run: a simulator that does not find one of them is the bug.

Production code has no flags for this: a method is replaced, and put back. `python -m broker_engine.simulator --planted`
prints the table. Bugs of a single log (a rename without its directory's sync, indexes that are trusted after a crash, a
promise before the sync) are planted in tests/simulation/test_crash_images.py, where every crash is tried.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from broker_engine.errors import ErrorCode
from broker_engine.handlers import broker_registration, replica_fetch
from broker_engine.metadata import brokers
from broker_engine.partition.core import PartitionCore
from broker_engine.partition.follower_core import FollowerCore
from broker_engine.partition.replica import ReplicaCore
from broker_engine.server import run as server_run
from broker_engine.server.data_dir import DataDir
from broker_engine.server.local_partition import LocalPartition
from broker_engine.server.metadata_driver import MetadataDriver
from broker_engine.server.roles import RoleMaker
from broker_engine.simulator.run import RunReport, run_seed
from broker_engine.simulator.sim_clock import SimClock
from broker_engine.simulator.sim_disk import SimDisk

SEEDS_MAX = 2_000


@dataclass(frozen=True, slots=True)
class Patch:
    owner: Any
    """A class or a module."""
    attribute: str
    replacement: Any


@dataclass(frozen=True, slots=True)
class Planted:
    name: str
    what: str
    patches: tuple[Patch, ...]
    first_seed: int = 0
    """From here on it is found soon: for the test."""

    @contextmanager
    def in_place(self) -> Iterator[None]:
        originals = [vars(patch.owner)[patch.attribute] for patch in self.patches]
        for patch in self.patches:
            setattr(patch.owner, patch.attribute, patch.replacement)
        try:
            yield
        finally:
            for patch, original in zip(self.patches, originals, strict=True):
                setattr(patch.owner, patch.attribute, original)


@dataclass(frozen=True, slots=True)
class Finding:
    seed_count: int
    """How many seeds it took."""
    report: RunReport


def find(planted: Planted, seeds: Iterable[int]) -> Finding | None:
    with planted.in_place():
        for count, seed in enumerate(seeds, start=1):
            report = run_seed(seed)
            if not report.is_ok:
                return Finding(count, report)
    return None


# --- replication


def _check_no_epoch(self: ReplicaCore, current_leader_epoch: int) -> None:
    pass


def _core_cut_to_high_watermark(self: Any, state: Any, local: LocalPartition) -> Any:
    """As a replica did on becoming a follower before leader epochs were known: its high watermark may lag."""
    core = _next_core(self, state, local)
    if isinstance(core, FollowerCore) and core.high_watermark < core.log_end_offset and local.busy is None:
        local.log.truncate_to(core.high_watermark)
        core = _next_core(self, state, local)
    return core


def _cut_nothing(self: FollowerCore, own_end_offset: int, leader_end_offset: int) -> int:
    return self.log_end_offset


def _has_high_watermark(self: PartitionCore, follower: Any) -> bool:
    return bool(self._counted_end(follower) >= self.high_watermark)


def _ack_at_once(self: LocalPartition, end_offset: int, on_acked: Any) -> None:
    on_acked(ErrorCode.NONE)


def _written_end(self: PartitionCore, follower: Any) -> int:
    return int(follower.end_offset)


def _keep_producers(self: FollowerCore, log_start_offset: int, log_end_offset: int, producers: Any) -> None:
    _on_truncated(self, log_start_offset, log_end_offset, self.producers)


_on_truncated = FollowerCore.on_truncated
_next_core = RoleMaker.next_core


# --- controller and quorum


def _all_are_clean(*arguments: Any, **given: Any) -> Any:
    return _out_of_sync(*arguments, **{**given, "is_clean": True, "is_wiped": False})


def _leads_at_once(self: MetadataDriver) -> bool:
    return self._node is not None and self._node.core.is_leader


_out_of_sync = brokers._out_of_sync


def _believe_any_marker(image: Any, *, broker_id: int, previous_broker_epoch: int = -1, **given: Any) -> Any:
    known = image.brokers.get(broker_id)
    if previous_broker_epoch >= 0 and known is not None:
        previous_broker_epoch = known.epoch
    return brokers.register_broker(image, broker_id=broker_id, previous_broker_epoch=previous_broker_epoch, **given)


# --- disk


def _kept_clean_marker(self: DataDir) -> int | None:
    if not self.files.exists(".kafka_cleanshutdown"):
        return None
    return int(json.loads(self.files.read_small(".kafka_cleanshutdown"))["brokerEpoch"])


def _write_votes_lazily(self: SimDisk, path: str, data: bytes, *, is_durable: bool) -> None:
    _write_atomic(self, path, data, is_durable=is_durable and not path.endswith("quorum-state"))


_write_atomic = SimDisk.write_atomic


async def _wait_for_nothing(self: MetadataDriver, next_offset: int) -> None:
    pass


def _delete_strays(files: Any, image: Any, randomness: Any) -> None:
    """What the image does not know yet is gone for good."""
    for name in files.list_dir(""):
        topic, _, index = name.rpartition("-")
        is_known = any(known.name.name == topic for known in image.topics.values())
        if topic and index.isdigit() and not topic.startswith("__") and not is_known:
            for file in files.list_dir(name):
                files.unlink(f"{name}/{file}")
            files.remove_dir(name)


PLANTED: tuple[Planted, ...] = (
    Planted("truncate-to-hw", "a new follower cuts its log to its own high watermark (KIP-101)",
            (Patch(RoleMaker, "next_core", _core_cut_to_high_watermark),)),
    Planted("no-truncation", "a follower keeps what its leader never had",
            (Patch(FollowerCore, "truncation_offset", _cut_nothing),)),
    Planted("no-fetch-epoch", "nobody asks a follower of which epoch it is and what it has (KIP-101, KIP-320)",
            (Patch(ReplicaCore, "check_leader_epoch", _check_no_epoch),
             Patch(replica_fetch, "diverging_epoch", lambda local, last_fetched_epoch, fetch_offset: None))),
    Planted("no-epoch-start", "a follower joins the ISR before it has the epoch's start",
            (Patch(PartitionCore, "_has_caught_up", _has_high_watermark),)),
    Planted("hw-by-isr", "the high watermark goes by the ISR, not by the maximal one (KIP-497)",
            (Patch(PartitionCore, "maximal_isr", property(lambda self: self.isr)),
             Patch(PartitionCore, "_is_about_to_join", lambda self, replica, follower: False))),
    Planted("hw-by-written", "in fsync mode what a follower has not synced counts",
            (Patch(PartitionCore, "_counted_end", _written_end),)),
    Planted("ack-at-once", "acks=all is answered after the leader's append",
            (Patch(LocalPartition, "when_acked", _ack_at_once),)),
    Planted("producers-kept", "what producers did is not read anew after a cut",
            (Patch(FollowerCore, "on_truncated", _keep_producers),)),
    Planted("unclean-kept", "a crashed broker stays among those who may be elected (KIP-966)",
            (Patch(brokers, "_out_of_sync", _all_are_clean),)),
    Planted("clean-marker-kept", "the marker of a clean stop outlives the next crash, and nobody compares its epoch",
            (Patch(DataDir, "take_clean_marker", _kept_clean_marker),
             Patch(broker_registration, "register_broker", _believe_any_marker)), first_seed=280),
    Planted("vote-not-synced", "a vote is told before it is on disk",
            (Patch(SimDisk, "write_atomic", _write_votes_lazily),)),
    Planted("serve-before-commit", "a new controller decides before its own epoch has committed",
            (Patch(MetadataDriver, "is_leader", property(_leads_at_once)),)),
    Planted("strays-deleted", "directories that the image does not know yet are deleted",
            (Patch(MetadataDriver, "wait_for_offset", _wait_for_nothing),
             Patch(server_run, "tidy", _delete_strays))),
    Planted("wall-clock-timers", "sessions and time-outs go by the wall clock",
            (Patch(SimClock, "monotonic_ms", SimClock.now_ms),), first_seed=262),
)  # fmt: skip
