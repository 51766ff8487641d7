"""What a partition becomes: the rules of ISR, ELR, elections and reassignments in one place (KIP-966, KIP-455).

A command says what it wants different (`target`), `settle` gives what follows from it, and every change goes this way:
a reassignment that can be completed is; who left the ISR while fewer than min.insync are left stays eligible to lead
(ELR), for the high watermark stands still meanwhile; a leader that may not lead is replaced: by a member of the ISR,
else of the ELR, else, only where that is asked for (unclean.py), by a replica that may lack records; every new term
has a new epoch.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from types import MappingProxyType

from broker_engine.config.topic import TopicDefaults, default_min_insync
from broker_engine.ids import NO_LEADER
from broker_engine.metadata.image import MetadataImage
from broker_engine.metadata.log_ends import LogEnd, longest
from broker_engine.metadata.parts import RECOVERING, PartitionImage, TopicImage

MIN_INSYNC = "min.insync.replicas"
UNCLEAN = "unclean.leader.election.enable"


class Election(Enum):
    IF_NEEDED = "a leader that may lead goes on"
    PREFERRED = "the first replica, if it is in sync"
    UNCLEAN = "any live replica, when nobody else is left"


@dataclass(frozen=True, slots=True)
class Rules:
    """What holds for the partitions of one topic at this moment."""

    set_min_insync: int | None
    """min.insync.replicas as set by the topic or the broker; None = by the replication factor."""
    is_unclean_allowed: bool
    is_active: Callable[[int], bool]
    """Whether a broker is registered, not fenced and not shutting down."""

    def min_insync(self, replication_factor: int) -> int:
        return self.set_min_insync or default_min_insync(replication_factor)

    def needed(self, partition: PartitionImage) -> int:
        """As many must be in sync for records to be acknowledged; never more than there are replicas."""
        return min(self.min_insync(partition.replication_factor), len(partition.replicas))


def rules_of(image: MetadataImage, topic: TopicImage, config: TopicDefaults) -> Rules:
    min_insync = topic.configs.get(MIN_INSYNC) or config.topic_default(MIN_INSYNC)
    unclean = topic.configs.get(UNCLEAN)
    brokers = image.brokers

    def is_active(broker_id: int) -> bool:
        broker = brokers.get(broker_id)
        return broker is not None and broker.is_active

    return Rules(
        set_min_insync=int(str(min_insync)) if min_insync else None,
        is_unclean_allowed=unclean.lower() == "true" if unclean is not None else config.topic_default(UNCLEAN) is True,
        is_active=is_active,
    )


def settle(
    before: PartitionImage,
    target: PartitionImage,
    rules: Rules,
    *,
    election: Election = Election.IF_NEEDED,
    unclean_members: Collection[int] = (),
    wiped_members: Collection[int] = (),
    is_led_anew: bool = False,
    is_new_version: bool = False,
    log_ends: Mapping[int, LogEnd] = MappingProxyType({}),
) -> PartitionImage:
    """What `before` becomes when it should become `target`; `before` itself where nothing changes.

    `unclean_members` came back without a clean stop, and so may lack records: they are not eligible. When nobody else
    is left, `recovery.py` finds out who has the most. `wiped_members` have nothing left. `is_led_anew` begins a new
    term even if the same broker leads, `is_new_version` a new partition epoch, so that proposals under way are refused.
    `log_ends`, where known, say who has the most, if somebody who is not in sync has to lead.
    """
    after = _completed(target, rules)
    after = _with_eligible(before, after, rules, unclean_members, wiped_members)
    after = _with_leader(before, after, rules, election, log_ends)
    if after == before and not is_led_anew and not is_new_version:
        return before
    is_new_term = is_led_anew or after.leader != before.leader or not set(before.replicas) <= set(after.replicas)
    return dataclasses.replace(
        after, leader_epoch=before.leader_epoch + is_new_term, partition_epoch=before.partition_epoch + 1
    )


def without(members: Iterable[int], *gone: int) -> tuple[int, ...]:
    return tuple(member for member in members if member not in gone)


def _completed(target: PartitionImage, rules: Rules) -> PartitionImage:
    """A reassignment ends once everybody new is in sync, and enough are without those who go."""
    if not target.is_reassigning:
        return target
    replicas, isr = without(target.replicas, *target.removing), without(target.isr, *target.removing)
    if not set(target.adding) <= set(isr) or len(isr) < min(rules.min_insync(len(replicas)), len(replicas)):
        return target
    return dataclasses.replace(target, replicas=replicas, isr=isr, adding=(), removing=())


def _with_eligible(
    before: PartitionImage,
    after: PartitionImage,
    rules: Rules,
    unclean_members: Collection[int],
    wiped_members: Collection[int],
) -> PartitionImage:
    if len(after.isr) >= rules.needed(after):
        return _without_eligible(after)

    def may_be_known(member: int) -> bool:
        return member in after.replicas and member not in after.isr and member not in wiped_members

    candidates = [member for member in dict.fromkeys((*before.elr, *before.isr)) if may_be_known(member)]
    elr = [member for member in candidates if member not in unclean_members]
    # The leader first: it had every record of its term.
    leavers = sorted(without(before.isr, *after.isr), key=lambda member: member != before.leader)
    known = dict.fromkeys((*leavers, *before.elr, *before.last_known_elr))
    last_known = tuple(member for member in known if may_be_known(member) and member not in elr)
    return dataclasses.replace(after, elr=tuple(elr), last_known_elr=last_known)


def _without_eligible(partition: PartitionImage) -> PartitionImage:
    if not partition.elr and not partition.last_known_elr:
        return partition
    return dataclasses.replace(partition, elr=(), last_known_elr=())


def _with_leader(
    before: PartitionImage,
    after: PartitionImage,
    rules: Rules,
    election: Election,
    log_ends: Mapping[int, LogEnd],
) -> PartitionImage:
    leader = choose_in_sync(after, before.leader, rules, election)
    if leader is not None:
        return after if leader == after.leader else dataclasses.replace(after, leader=leader)
    leader = _first_active(after.replicas, rules, among=after.elr)
    if leader is not None:
        elected = dataclasses.replace(after, leader=leader, isr=(leader,), elr=without(after.elr, leader))
        return _without_eligible(elected) if rules.needed(elected) <= 1 else elected
    leader = choose_unclean(after, rules, log_ends) if election is Election.UNCLEAN else None
    return dataclasses.replace(after, leader=NO_LEADER) if leader is None else _led_uncleanly(after, leader)


def choose_in_sync(partition: PartitionImage, current_leader: int, rules: Rules, election: Election) -> int | None:
    """The preferred one where that is asked for, else who leads now, else the first replica that is in sync."""
    in_sync = partition.isr
    preferred = partition.replicas[0]
    if election is Election.PREFERRED and preferred in in_sync and rules.is_active(preferred):
        return preferred
    if current_leader in in_sync and rules.is_active(current_leader):
        return current_leader
    return _first_active(partition.replicas, rules, among=in_sync)


def choose_unclean(partition: PartitionImage, rules: Rules, log_ends: Mapping[int, LogEnd]) -> int | None:
    """Who has the most; where that is not known, who was in sync last."""
    candidates = dict.fromkeys((*partition.last_known_elr, *partition.replicas))
    return longest(filter(rules.is_active, candidates), log_ends, epoch_max=partition.leader_epoch)


def _first_active(order: Iterable[int], rules: Rules, *, among: Collection[int]) -> int | None:
    return next((member for member in order if member in among and rules.is_active(member)), None)


def _led_uncleanly(partition: PartitionImage, leader: int) -> PartitionImage:
    """By `leader` alone, whose log is the truth from now on: nobody else is eligible any more."""
    return dataclasses.replace(
        partition,
        leader=leader,
        isr=(leader,),
        elr=(),
        last_known_elr=(),
        leader_recovery_state=RECOVERING,
        unclean_elections=partition.unclean_elections + 1,
    )
