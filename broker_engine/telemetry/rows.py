"""Rows made of what the broker's parts say of themselves."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from broker_engine.metadata.image import BrokerImage, MetadataImage
from broker_engine.server.data_dir import id_text
from broker_engine.server.local_partition import LocalPartition
from broker_engine.telemetry.roster import Entry
from broker_engine.telemetry.schema import ClusterRow, MemberRow, PartitionRow, ReplicaRow

UNKNOWN = -1


def partition_row(entry: Entry, now_ms: int) -> PartitionRow:
    return _leaderless_row(entry, now_ms) if entry.local is None else _led_row(entry, entry.local, now_ms)


def _led_row(entry: Entry, local: LocalPartition, now_ms: int) -> PartitionRow:
    state = entry.state
    ends = local.core.replica_end_offsets()
    return PartitionRow(
        at_ms=now_ms,
        topic_id=id_text(local.topic_id),
        leader=state.leader,
        leader_epoch=state.leader_epoch,
        isr=list(state.isr),
        replicas=[ReplicaRow(broker, ends.get(broker, UNKNOWN)) for broker in state.replicas],
        log_start_offset=local.log_start_offset,
        high_watermark=local.high_watermark,
        last_stable_offset=local.last_stable_offset,
        log_end_offset=local.log.log_end_offset,
        size_bytes=local.log.size_bytes,
        last_append_ms=local.last_append_ms,
        partition_epoch=state.partition_epoch,
        elr=list(state.elr),
        adding=list(state.adding),
        removing=list(state.removing),
        min_insync=min_insync(local),
        unclean_election_count=state.unclean_elections,
    )


def _leaderless_row(entry: Entry, now_ms: int) -> PartitionRow:
    state = entry.state
    return PartitionRow(
        at_ms=now_ms,
        topic_id=id_text(entry.topic_id),
        leader=state.leader,
        leader_epoch=state.leader_epoch,
        isr=list(state.isr),
        replicas=[ReplicaRow(broker, UNKNOWN) for broker in state.replicas],
        log_start_offset=UNKNOWN,
        high_watermark=UNKNOWN,
        last_stable_offset=UNKNOWN,
        log_end_offset=UNKNOWN,
        size_bytes=UNKNOWN,
        last_append_ms=0,
        partition_epoch=state.partition_epoch,
        elr=list(state.elr),
        adding=list(state.adding),
        removing=list(state.removing),
        unclean_election_count=state.unclean_elections,
    )


def min_insync(local: LocalPartition) -> int:
    return local.core.settings.min_insync_replicas


def is_under_min_isr(entry: Entry) -> bool:
    return entry.local is not None and len(entry.state.isr) < min_insync(entry.local)


def is_under_replicated(entry: Entry) -> bool:
    """Replicas that a move is just bringing do not count: nothing is missing without them."""
    state = entry.state
    return any(broker not in state.isr and broker not in state.adding for broker in state.replicas)


class LedCensus(NamedTuple):
    """Counts over the partitions that are led here, by what the metadata say: they change with those only."""

    leader_count: int = 0
    under_replicated_count: int = 0
    under_min_isr_count: int = 0


class LogCensus(NamedTuple):
    """Counts over all logs here."""

    offline_count: int = 0
    size_bytes: int = 0


def census_of_led(entries: Iterable[Entry]) -> LedCensus:
    led = list(entries)
    return LedCensus(len(led), sum(map(is_under_replicated, led)), sum(map(is_under_min_isr, led)))


def census_of_logs(locals_: Iterable[LocalPartition]) -> LogCensus:
    logs = [local.log for local in locals_]
    return LogCensus(sum(log.is_offline for log in logs), sum(log.size_bytes for log in logs))


def cluster_row(
    image: MetadataImage, *, controller: int, controller_epoch: int, unclean_election_count: int, now_ms: int
) -> ClusterRow:
    return ClusterRow(
        at_ms=now_ms,
        metadata_offset=image.next_offset,
        controller=controller,
        controller_epoch=controller_epoch,
        voters=[voter.id for voter in image.voters],
        brokers=[_member(image.brokers[broker]) for broker in sorted(image.brokers)],
        unclean_election_count=unclean_election_count,
    )


def _member(broker: BrokerImage) -> MemberRow:
    return MemberRow(broker.id, broker.epoch, broker.host, broker.rack or "", broker.is_fenced, broker.is_shutting_down)
