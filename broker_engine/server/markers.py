"""Appends transaction markers, and what coordinators write in a producer's transaction, to partitions led here.

On the event loop without an await, as every append. A marker in `__consumer_offsets` is told to the groups when it is
acknowledged: acknowledgements come in the order of the log, so offsets of the transaction are known by then.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from broker_engine.errors import BrokerError, ErrorCode
from broker_engine.metadata.topics import OFFSETS_TOPIC
from broker_engine.names import ROOT, from_wire
from broker_engine.partition.verification import Guard
from broker_engine.records.batch import parse_header
from broker_engine.records.control import TxnMarker, marker_batch
from broker_engine.server.acks import OnAcked
from broker_engine.server.local_partition import LocalPartition

if TYPE_CHECKING:
    from broker_engine.server.broker import Broker

TopicPartition = tuple[str, int]
"""The topic by its physical text."""


class Marker(NamedTuple):
    """The end of one producer's transaction, for the partitions that it wrote to."""

    producer_id: int
    producer_epoch: int
    is_commit: bool
    coordinator_epoch: int
    partitions: tuple[TopicPartition, ...]
    transaction_version: int = 0


def append_marker(broker: Broker, marker: Marker, place: TopicPartition, on_acked: OnAcked) -> None:
    """BrokerError: nothing was appended. `on_acked` is called once, maybe at once."""
    local, offsets_index = _led(broker, place)
    core = local.leading
    assert core is not None, "looked up as led here"
    end = TxnMarker(marker.is_commit, marker.coordinator_epoch)
    core.check_marker(marker.producer_id, marker.producer_epoch, end, marker.transaction_version)
    batch = marker_batch(marker.producer_id, marker.producer_epoch, end, local.now_ms())
    end_offset = local.append_own(batch, end)
    local.note_changed()

    def on_marker_acked(code: ErrorCode) -> None:
        if code is ErrorCode.NONE and offsets_index is not None:
            broker.groups.on_marker(offsets_index, marker.producer_id, marker.producer_epoch, marker.is_commit)
        on_acked(code)

    local.when_acked(end_offset, on_marker_acked)


def append_in_transaction(local: LocalPartition, batch: bytes, guard: Guard | None) -> int:
    """A coordinator's own batch, as part of a producer's transaction. Where it ends; BrokerError: not appended."""
    core = local.leading
    if core is None:
        raise BrokerError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
    header = parse_header(batch)
    local.check_size(header)
    core.check_coordinated(header, guard)
    end_offset = local.append_own(batch)
    local.note_changed()
    return end_offset


def _led(broker: Broker, place: TopicPartition) -> tuple[LocalPartition, int | None]:
    """And which partition of the groups' offsets it is, if it is one."""
    topic = broker.image.topic(from_wire(place[0], ROOT))
    index = place[1]
    if topic is None or index not in topic.partitions:
        raise BrokerError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    local = broker.partitions.find(topic.id, index)
    if local is None or local.leading is None or broker.is_self_fenced:
        raise BrokerError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
    if topic.name != OFFSETS_TOPIC:
        return local, None
    if not broker.groups.is_loaded(index):  # it would learn of the marker, and maybe not of the offsets before it
        raise BrokerError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
    return local, index
