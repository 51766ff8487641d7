"""Historic bugs, planted for the length of a run: a simulator that does not find one of them is the bug.

Production code has no flags for this: a method is replaced, and put back. `python -m broker_engine.simulator --planted`
prints the table. Some have a swarm profile, in which their situation is common (planted_profiles.py). More bugs of a
single log are planted in tests/simulation/test_crash_images.py, where every crash is tried.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from broker_engine.errors import ErrorCode
from broker_engine.groups.classic import ClassicGroup
from broker_engine.groups.consumer import reconcile
from broker_engine.groups.pending_offsets import PendingOffsets
from broker_engine.handlers import broker_registration, replica_fetch
from broker_engine.log.segment import Segment
from broker_engine.metadata import brokers, recovery
from broker_engine.partition.core import PartitionCore
from broker_engine.partition.follower_core import FollowerCore
from broker_engine.partition.replica import ReplicaCore
from broker_engine.quorum.election import Elections
from broker_engine.quorum.leading import Leading
from broker_engine.server import group_coordinator
from broker_engine.server import run as server_run
from broker_engine.server.data_dir import DataDir
from broker_engine.server.local_partition import LocalPartition
from broker_engine.server.metadata_driver import MetadataDriver
from broker_engine.server.roles import RoleMaker
from broker_engine.server.shards import Shards
from broker_engine.server.transaction_coordinator import TransactionCoordinator
from broker_engine.simulator.planted_coordination import (
    abort_in_the_same_epoch,
    abort_what_was_decided,
    any_epoch_may_commit,
    any_epoch_may_end,
    any_generation_may_commit,
    apply_aborted_offsets,
    find_while_loading,
    give_what_another_has,
    leave_what_was_decided,
    same_epoch_again,
    stable_to_the_end,
    write_answered_at_once,
)
from broker_engine.simulator.planted_profiles import (
    asked_for_ends,
    contested_elections,
    jumping_clocks,
    lost_power,
    rotten_copies,
    single_copies,
    with_bank,
    with_consumer_groups,
    with_groups,
    with_late_ends,
    with_slow_loading,
)
from broker_engine.simulator.planted_quorum import commit_by_counting, rename_without_sync, vote_for_anybody
from broker_engine.simulator.run import RunReport, play
from broker_engine.simulator.schedule import draw_faults
from broker_engine.simulator.sim_clock import SimClock
from broker_engine.simulator.sim_disk import SimDisk
from broker_engine.simulator.swarm import Swarm, draw
from broker_engine.transactions import core as transaction_core

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
    profile: Callable[[Swarm], Swarm] = lambda swarm: swarm
    """What of a seed's swarm is weighed otherwise."""

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
            swarm = planted.profile(draw(seed))
            report = play(swarm, draw_faults(swarm))
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


def _delete_strays(files: Any, image: Any, randomness: Any) -> None:
    """As before the metadata has come, when no topic is known: what belongs to none is gone for good."""
    for name in files.list_dir(""):
        topic, _, index = name.rpartition("-")
        if topic and index.isdigit() and not topic.startswith("__"):
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
            (Patch(PartitionCore, "_has_caught_up", _has_high_watermark),), profile=asked_for_ends),
    Planted("hw-by-isr", "the high watermark goes by the ISR, not by the maximal one (KIP-497)",
            (Patch(PartitionCore, "maximal_isr", property(lambda self: self.isr)),
             Patch(PartitionCore, "_is_about_to_join", lambda self, replica, follower: False))),
    Planted("hw-by-written", "in fsync mode what a follower has not synced counts",
            (Patch(PartitionCore, "_counted_end", _written_end),)),
    Planted("ack-at-once", "acks=all is answered after the leader's append",
            (Patch(LocalPartition, "when_acked", _ack_at_once),)),
    Planted("producers-kept", "what producers did is not read anew after a cut",
            (Patch(FollowerCore, "on_truncated", _keep_producers),), first_seed=40),  # 46 from seed 0 on
    Planted("unclean-kept", "a crashed broker stays among those who may be elected (KIP-966)",
            (Patch(brokers, "_out_of_sync", _all_are_clean),)),
    Planted("first-one-leads", "of all who were in sync and crashed, the first to come back leads, whatever it lost",
            (Patch(recovery, "needed_count", lambda partition, rules: 1),), profile=rotten_copies, first_seed=38),
    Planted("clean-marker-kept", "the marker of a clean stop outlives the next crash, and nobody compares its epoch",
            (Patch(DataDir, "take_clean_marker", _kept_clean_marker),
             Patch(broker_registration, "register_broker", _believe_any_marker))),
    Planted("vote-not-synced", "a vote is told before it is on disk",
            (Patch(SimDisk, "write_atomic", _write_votes_lazily),)),
    Planted("rename-not-synced", "a rename is not followed by a sync of its directory",
            (Patch(SimDisk, "write_atomic", rename_without_sync),), profile=contested_elections),
    Planted("vote-twice", "a voter forgets whom it voted for in this epoch",
            (Patch(Elections, "_grants_vote", vote_for_anybody),), profile=contested_elections),
    Planted("commit-by-counting", "a controller commits entries of older epochs by counting copies (Raft 5.4.2)",
            (Patch(Leading, "_may_commit", commit_by_counting),), profile=contested_elections),
    Planted("index-trusted", "indexes that nobody synced are trusted after a crash",
            (Patch(Segment, "_index_handles", lambda self: []),), profile=lost_power),
    Planted("latest-too-early", "a new leader tells the end before it knows what is committed",
            (Patch(PartitionCore, "knows_latest_offset", property(lambda self: True)),), profile=asked_for_ends),
    Planted("serve-before-commit", "a new controller decides before its own epoch has committed",
            (Patch(MetadataDriver, "is_leader", property(_leads_at_once)),)),
    Planted("strays-deleted", "directories that the image does not know yet are deleted",
            (Patch(server_run, "tidy", _delete_strays),), profile=single_copies),
    Planted("wall-clock-timers", "sessions and time-outs go by the wall clock",
            (Patch(SimClock, "monotonic_ms", SimClock.now_ms),), profile=jumping_clocks),
    Planted("offsets-at-once", "a coordinator answers before what it says is replicated",
            (Patch(Shards, "write", write_answered_at_once),), profile=with_groups),
    Planted("serve-while-loading", "a coordinator answers before it has read what its predecessor knew",
            (Patch(Shards, "find", find_while_loading),), profile=with_slow_loading),
    Planted("any-generation", "whoever was in a group may commit, in whatever generation",
            (Patch(ClassicGroup, "check_commit", any_generation_may_commit),), profile=with_groups),
    Planted("any-epoch", "whoever was in a group that the broker assigns may commit, in whatever epoch",
            (Patch(group_coordinator, "check_commit", any_epoch_may_commit),), profile=with_consumer_groups),
    Planted("given-too-early", "a partition is given to a member before the one who has it has let go of it",
            (Patch(reconcile, "_given", give_what_another_has),), profile=with_consumer_groups),
    Planted("stable-too-early", "readers of committed records read what is open",
            (Patch(ReplicaCore, "last_stable_offset", property(stable_to_the_end)),), profile=with_bank),
    Planted("epoch-kept", "a transaction that took too long is aborted, and its producer not fenced",
            (Patch(transaction_core, "timed_out", abort_in_the_same_epoch),), profile=with_bank),
    Planted("zombie-not-fenced", "the next producer of an id has the epoch of the one before",
            (Patch(transaction_core, "_with_next_epoch", same_epoch_again),), profile=with_bank),
    Planted("late-end", "an end that comes late ends the transaction that is open now, whoever's it is (KIP-890)",
            (Patch(transaction_core, "_end_error", any_epoch_may_end),), profile=with_late_ends),
    Planted("other-outcome", "a new coordinator aborts what its predecessor had committed",
            (Patch(TransactionCoordinator, "on_loaded", abort_what_was_decided),), profile=with_bank),
    Planted("markers-forgotten", "a new coordinator leaves what its predecessor had decided",
            (Patch(TransactionCoordinator, "on_loaded", leave_what_was_decided),), profile=with_bank),
    Planted("aborted-offsets", "a group's offsets move though the transaction was aborted",
            (Patch(PendingOffsets, "end", apply_aborted_offsets),), profile=with_bank),
)  # fmt: skip
