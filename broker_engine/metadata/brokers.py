"""Commands on brokers: register, fence, unfence, shut down, unregister; and what each means for their partitions.

A broker comes fenced, and leads and is in sync only after its heartbeats ask for it. Who registers anew has a new
life: in the same batch its former one is out of every ISR, and, unless it stopped cleanly, no longer eligible to lead,
for it may lack records. When that leaves nobody, `recovery.py` elects who has the most.
A cluster of one goes on at once, under new leader epochs.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from uuid import UUID

from broker_engine.config.topic import TopicDefaults
from broker_engine.errors import BrokerError, ErrorCode
from broker_engine.metadata.decision import Decision, invalid_request
from broker_engine.metadata.image import MetadataImage
from broker_engine.metadata.partition_change import Rules, settle, without
from broker_engine.metadata.parts import BrokerImage, EndpointImage, PartitionImage
from broker_engine.metadata.records import (
    BrokerChangeRecord,
    BrokerRegistrationRecord,
    Record,
    RemoveBrokerRecord,
)
from broker_engine.metadata.snapshot import endpoint_field
from broker_engine.metadata.sweep import led_count, replica_count, sweep
from broker_engine.metadata.telemetry_topic import given_away, made_at_home
from broker_engine.metadata.topics import NewId
from broker_engine.wire.primitives import NULL_UUID

UNCLEAN_STOP = -1
"""The previous broker epoch of a broker that found no clean-shutdown marker."""


def register_broker(
    image: MetadataImage,
    *,
    broker_id: int,
    incarnation_id: UUID,
    endpoints: Sequence[EndpointImage],
    config: TopicDefaults,
    new_id: NewId,
    directory_id: UUID = NULL_UUID,
    controller_endpoint: EndpointImage | None = None,
    rack: str | None = None,
    previous_broker_epoch: int = UNCLEAN_STOP,
    is_old_session_alive: bool = False,
) -> Decision[None]:
    """A new life of a broker. Its epoch is the offset of the first record: `image.brokers[id].epoch` after replay.

    DUPLICATE_BROKER_REGISTRATION where another directory has this id and its broker lives. From the same directory
    nobody else can come: its lock was free, so the former process is dead.
    """
    current = image.brokers.get(broker_id)
    if current is not None and current.incarnation_id == incarnation_id:
        return Decision((), ())
    is_wiped = (
        current is not None
        and NULL_UUID not in (current.directory_id, directory_id)
        and (current.directory_id != directory_id)
    )
    if is_wiped and is_old_session_alive:
        text = f"Another broker is registered as {broker_id}, from another directory, and alive."
        raise BrokerError(ErrorCode.DUPLICATE_BROKER_REGISTRATION, text)
    is_alone = is_cluster_of_one(image, broker_id)
    registration = BrokerRegistrationRecord(
        broker_id=broker_id,
        incarnation_id=incarnation_id,
        rack=rack,
        endpoints=[endpoint_field(endpoint) for endpoint in endpoints],
        fenced=not is_alone,
        directory_id=directory_id,
        controller_endpoint=endpoint_field(controller_endpoint) if controller_endpoint else None,
    )
    working = image.replay([registration], image.next_offset)
    if is_alone:
        changes = _led_again(working, broker_id, config)
    else:
        is_clean = current is not None and previous_broker_epoch == current.epoch
        changes = _out_of_sync(working, broker_id, config, is_clean=is_clean, is_wiped=is_wiped)
    working = working.replay(changes, working.next_offset)
    return Decision((registration, *changes, *made_at_home(working, broker_id, new_id)), ())


def _led_again(image: MetadataImage, broker_id: int, config: TopicDefaults) -> list[Record]:
    """Under a new leader epoch: what it had not flushed may be gone, and an (epoch, offset) pair must never name two
    different records.
    """

    def again(partition: PartitionImage, rules: Rules) -> PartitionImage:
        target = dataclasses.replace(partition, isr=(broker_id,))
        return settle(partition, target, rules, is_led_anew=True)

    return sweep(image, config, lambda partition: broker_id in known_members(partition), again)


def _out_of_sync(
    image: MetadataImage, broker_id: int, config: TopicDefaults, *, is_clean: bool, is_wiped: bool
) -> list[Record]:
    def left(partition: PartitionImage, rules: Rules) -> PartitionImage:
        target = dataclasses.replace(partition, isr=without(partition.isr, broker_id))
        return settle(
            partition,
            target,
            rules,
            unclean_members=() if is_clean else (broker_id,),
            wiped_members=(broker_id,) if is_wiped else (),
        )

    return sweep(image, config, lambda partition: broker_id in known_members(partition), left)


def known_members(partition: PartitionImage) -> tuple[int, ...]:
    return (*partition.isr, *partition.elr, *partition.last_known_elr)


# --- while it lives


def fence_broker(image: MetadataImage, broker_id: int, broker_epoch: int, *, config: TopicDefaults) -> Decision[None]:
    """Out of every ISR, and others lead. Nothing where it is fenced already, or lives a new life: fencing is for a
    session that ended, and that one is over.
    """
    broker = image.brokers.get(broker_id)
    if broker is None or broker.epoch != broker_epoch or broker.is_fenced:
        return Decision((), ())
    record = BrokerChangeRecord(
        broker_id=broker_id, broker_epoch=broker_epoch, fenced=True, is_shutting_down=broker.is_shutting_down
    )
    working = image.replay([record], image.next_offset)
    return Decision((record, *_out_of_sync(working, broker_id, config, is_clean=True, is_wiped=False)), ())


def unfence_broker(image: MetadataImage, broker_id: int, broker_epoch: int, *, config: TopicDefaults) -> Decision[None]:
    """It leads again what nobody else could lead. It comes into ISRs by the leaders, once it has caught up."""
    broker = registered(image, broker_id, broker_epoch)
    if not broker.is_fenced:
        return Decision((), ())
    record = BrokerChangeRecord(broker_id=broker_id, broker_epoch=broker_epoch, fenced=False)
    working = image.replay([record], image.next_offset)
    elected = sweep(
        working,
        config,
        lambda partition: partition.leader < 0 and broker_id in partition.replicas,
        lambda partition, rules: settle(partition, partition, rules),
    )
    return Decision((record, *elected), ())


def controlled_shutdown(
    image: MetadataImage, broker_id: int, broker_epoch: int, *, config: TopicDefaults
) -> Decision[int]:
    """Its leaders move to others that are in sync, and it leaves every ISR. The result: how many it still leads.

    A cluster of one has nobody to move anything to: it simply stops.
    """
    broker = registered(image, broker_id, broker_epoch)
    if is_cluster_of_one(image, broker_id):
        return Decision((), (0,))
    if broker.is_shutting_down or broker.is_fenced:
        return Decision((), (led_count(image, broker_id),))
    record = BrokerChangeRecord(broker_id=broker_id, broker_epoch=broker_epoch, fenced=False, is_shutting_down=True)
    working = image.replay([record], image.next_offset)
    changes = _out_of_sync(working, broker_id, config, is_clean=True, is_wiped=False)
    return Decision((record, *changes), (led_count(working.replay(changes, working.next_offset), broker_id),))


def unregister_broker(image: MetadataImage, broker_id: int) -> Decision[None]:
    """For a broker that does not come back. Its replicas are moved to others first."""
    broker = image.brokers.get(broker_id)
    if broker is None:
        raise BrokerError(ErrorCode.BROKER_ID_NOT_REGISTERED, f"Broker ID {broker_id} is not currently registered")
    moved = given_away(image, broker_id)
    count = replica_count(image, broker_id) - len(moved)
    if count:
        raise invalid_request(f"Broker {broker_id} still holds {count} replica(s): move them to other brokers first.")
    return Decision((*moved, RemoveBrokerRecord(broker_id=broker_id, broker_epoch=broker.epoch)), ())


def is_cluster_of_one(image: MetadataImage, broker_id: int) -> bool:
    return all(other == broker_id for other in image.brokers)


def registered(image: MetadataImage, broker_id: int, broker_epoch: int) -> BrokerImage:
    """STALE_BROKER_EPOCH for a broker's former life."""
    broker = image.brokers.get(broker_id)
    if broker is None:
        raise BrokerError(ErrorCode.BROKER_ID_NOT_REGISTERED, f"Broker {broker_id} is not registered.")
    if broker.epoch != broker_epoch:
        raise BrokerError(ErrorCode.STALE_BROKER_EPOCH, f"Expected broker epoch {broker.epoch}, not {broker_epoch}.")
    return broker
