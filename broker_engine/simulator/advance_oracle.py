"""Rules 14 and 23 at the very moment: when a leader moves its high watermark, and when it acknowledges.

Looking at brokers now and then is too late for these: a moment afterwards a follower may have lost its disk, and the
ISR be smaller. What a leader counts is counted here once more, from what its followers told it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from broker_engine.errors import ErrorCode
from broker_engine.partition.core import PartitionCore
from broker_engine.partition.replica import ReplicaCore
from broker_engine.server.acks import OnAcked
from broker_engine.server.local_partition import LocalPartition

Violate = Callable[[str, str], None]


class AdvanceOracle:
    def __init__(self, violate: Violate) -> None:
        self._violate = violate

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Around what is there, planted bugs too."""
        advance, when_acked = ReplicaCore._set_high_watermark, LocalPartition.when_acked

        def watched_advance(core: ReplicaCore, high_watermark: int) -> None:
            advance(core, high_watermark)
            if isinstance(core, PartitionCore):
                self._on_moved(core)

        def watched_acks(local: LocalPartition, end_offset: int, on_acked: OnAcked) -> None:
            def on_watched(code: ErrorCode) -> None:
                self._on_acked(local, end_offset, code)
                on_acked(code)

            when_acked(local, end_offset, on_watched)

        ReplicaCore._set_high_watermark = watched_advance  # type: ignore[assignment, method-assign]
        LocalPartition.when_acked = watched_acks  # type: ignore[assignment, method-assign]
        try:
            yield
        finally:
            ReplicaCore._set_high_watermark = advance  # type: ignore[method-assign]
            LocalPartition.when_acked = when_acked  # type: ignore[method-assign]

    def _on_moved(self, core: PartitionCore) -> None:
        for problem in problems_of_advance(core):
            text = f"to {core.high_watermark} in term {core.leader_epoch} with ISR {core.isr}: {problem}"
            self._violate("14 everybody in sync has it", text)

    def _on_acked(self, local: LocalPartition, end_offset: int, code: ErrorCode) -> None:
        if code is ErrorCode.NONE and local.core.high_watermark < end_offset:
            text = f"{local.name}-{local.index} to {end_offset}, committed to {local.core.high_watermark}"
            self._violate("23 acknowledged is committed", text)


def problems_of_advance(core: PartitionCore) -> Iterator[str]:
    """Enough are in sync, and all whom the controller may count have fetched what is committed, in this term."""
    high_watermark = core.high_watermark
    needed = min(core.settings.min_insync_replicas, len(core.replicas))
    if len(core.isr) < needed:
        yield f"{needed} are needed"
    if (core.durable_end_offset if core.is_fsync else core.log_end_offset) < high_watermark:
        yield "the leader itself does not have it"
    proposed = () if core.proposal is None else core.proposal.isr
    for member in dict.fromkeys((*core.isr, *proposed)):
        follower = core._followers.get(member)
        if follower is None:
            continue  # the leader, or who is being moved away
        has = follower.durable_end_offset if core.is_fsync else follower.end_offset
        if has < high_watermark:
            yield f"node {member} has fetched to {has}"
