"""A partition's follower, pure: where it fetches from, what it cuts off, how far it knows the log to be committed.

Everything that comes from a leader counts only in the term in which it was asked for: the shell drops answers of an
earlier leader epoch. (17)
"""

from __future__ import annotations

from collections.abc import Iterable

from broker_engine.partition.effects import NEED_FLUSH, AdvanceHighWatermark, Effect
from broker_engine.partition.producers import ProducerStates
from broker_engine.partition.replica import PartitionSettings, ReplicaCore
from broker_engine.records.control import EndedTransaction, TxnMarker
from broker_engine.records.header import BatchHeader


class FollowerCore(ReplicaCore):
    def on_replicated(
        self, batches: Iterable[tuple[BatchHeader, TxnMarker | None]], now_ms: int
    ) -> list[EndedTransaction]:
        """Batches of the leader are in our log now. Answers the transactions that they aborted."""
        aborted = []
        for header, marker in batches:
            assert header.base_offset >= self.log_end_offset, "appended behind what was there"
            self.log_end_offset = header.next_offset
            if header.has_producer_id:
                self.refusals.forget(header.producer_id)
                ended = self.producers.record(header, header.base_offset, now_ms, marker)
                if ended is not None and ended.is_aborted:
                    aborted.append(ended)
        return aborted

    def on_leader_offsets(self, high_watermark: int) -> list[Effect]:
        """What the leader knows to be committed, as far as we have it."""
        offset = self._own_part(high_watermark)
        effects: list[Effect] = []
        if offset > self.high_watermark:
            self._set_high_watermark(offset)
            effects.append(AdvanceHighWatermark(offset))
        return [*effects, NEED_FLUSH] if self.is_flush_due else effects

    def _own_part(self, high_watermark: int) -> int:
        return min(high_watermark, self.log_end_offset)

    def on_flushed(self, durable_end_offset: int) -> list[Effect]:
        self._note_flushed(durable_end_offset)
        return []

    def configure(self, settings: PartitionSettings) -> list[Effect]:
        self._take_over(settings)
        return [NEED_FLUSH] if self.is_flush_due else []

    def on_metadata(self, replicas: tuple[int, ...], isr: tuple[int, ...], partition_epoch: int) -> None:
        """A newer image of the same leader epoch."""
        self.replicas, self.isr, self.partition_epoch = replicas, isr, partition_epoch

    def truncation_offset(self, own_end_offset: int, leader_end_offset: int) -> int:
        """Where the logs part: both know the epoch, or the largest one below it, and say where it ends. (17)"""
        return min(own_end_offset, leader_end_offset, self.log_end_offset)

    def on_truncated(self, log_start_offset: int, log_end_offset: int, producers: ProducerStates) -> None:
        """The log was cut, or begun anew where the leader's starts; `producers` is what the rest of it tells.

        A cut below the high watermark happens only after an unclean election: committed records were given up there.
        """
        self.log_start_offset, self.log_end_offset = log_start_offset, log_end_offset
        self.durable_end_offset = min(self.durable_end_offset, log_end_offset)
        self.durable_end_offset = max(self.durable_end_offset, log_start_offset)
        self.high_watermark = max(log_start_offset, min(self.high_watermark, log_end_offset))
        self.producers = producers
        self.producers.on_high_watermark(self.high_watermark)
        self._stable_at_flush = self._durable_stable_offset = log_start_offset  # it may rest on markers that were cut


__all__ = ["FollowerCore", "PartitionSettings"]
