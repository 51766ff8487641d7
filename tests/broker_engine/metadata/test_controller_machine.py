"""Random lives of a cluster against the invariants of reliability.md section 2 (18 to 22), after every command.

Leaders are played by what a leader knows: some are behind, some were deposed, some propose members that may not be in
sync. Every decision is replayed, as every node would.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from broker_engine.errors import BrokerError
from broker_engine.metadata.controller import (
    ConfigChange,
    ConfigOperation,
    Decision,
    Election,
    IsrProposal,
    LogEnd,
    NewTopic,
    Reassignment,
    Resource,
    alter_partition,
    alter_reassignments,
    balance_leaders,
    controlled_shutdown,
    create_topics,
    elect_leaders,
    every_partition,
    fence_broker,
    find_leaders,
    incremental_alter_configs,
    recover_leaders,
    unfence_broker,
    unregister_broker,
    waiting_for_leader,
    with_consequences,
)
from broker_engine.metadata.image import EMPTY_IMAGE, MetadataImage
from broker_engine.metadata.partition_change import rules_of
from broker_engine.metadata.parts import PartitionImage, TopicImage
from broker_engine.metadata.snapshot import records_of
from broker_engine.metadata.sweep import Place, partitions_where
from broker_engine.metadata.telemetry_topic import TELEMETRY_TOPIC
from tests.broker_engine.metadata.builders import CONFIG, Ids, after, register, root

BROKERS = range(1, 6)
NAMES = [root(name) for name in "abc"]
NOBODY = -1


class ControllerMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.image: MetadataImage = EMPTY_IMAGE
        self.ids = Ids()
        self.former_epochs: list[tuple[int, int]] = []
        self.seen: list[tuple[UUID, int, PartitionImage]] = []
        """What some leader knew at some time: proposals may rest on it."""

    # --- life of brokers

    @initialize(count=st.integers(1, 5))
    def begin(self, count: int) -> None:
        for broker_id in BROKERS[:count]:
            self._run(register(self.image, broker_id, incarnation_id=self.ids(), new_id=self.ids))
            self._run(unfence_broker(self.image, broker_id, self._epoch(broker_id), config=CONFIG))
        for name in NAMES:
            self.create(
                name=name, partition_count=2, factor=min(3, count), min_insync=None, is_unclean=name == NAMES[2]
            )

    @rule(broker_id=st.sampled_from(BROKERS), is_clean=st.booleans(), is_wiped=st.booleans())
    def restart(self, broker_id: int, is_clean: bool, is_wiped: bool) -> None:
        current = self.image.brokers.get(broker_id)
        if current is not None:
            self.former_epochs.append((broker_id, current.epoch))
        directory = self.ids() if is_wiped or current is None else current.directory_id
        previous = current.epoch if current is not None and is_clean else -1
        decision = register(
            self.image,
            broker_id,
            incarnation_id=self.ids(),
            directory_id=directory,
            previous_broker_epoch=previous,
            new_id=self.ids,
        )
        before = self.image
        self._run(decision)
        if not is_clean and len(self.image.brokers) > 1:
            self._check_unclean_exclusion(before, broker_id)

    @rule(broker_id=st.sampled_from(BROKERS))
    def fence(self, broker_id: int) -> None:
        if broker_id in self.image.brokers:
            self._run(fence_broker(self.image, broker_id, self._epoch(broker_id), config=CONFIG))
            assert self.image.brokers[broker_id].is_fenced

    @rule(broker_id=st.sampled_from(BROKERS))
    def unfence(self, broker_id: int) -> None:
        if broker_id in self.image.brokers:
            self._run(unfence_broker(self.image, broker_id, self._epoch(broker_id), config=CONFIG))

    @rule(broker_id=st.sampled_from(BROKERS))
    def shut_down(self, broker_id: int) -> None:
        if broker_id in self.image.brokers:
            decision = controlled_shutdown(self.image, broker_id, self._epoch(broker_id), config=CONFIG)
            self._run(decision)
            assert decision.results == (0,)

    @rule(broker_id=st.sampled_from(BROKERS))
    def unregister(self, broker_id: int) -> None:
        self._try(lambda: unregister_broker(self.image, broker_id))

    @precondition(lambda self: self.former_epochs)
    @rule(data=st.data())
    def a_former_life_is_refused(self, data: st.DataObject) -> None:
        broker_id, epoch = data.draw(st.sampled_from(self.former_epochs))
        assert fence_broker(self.image, broker_id, epoch, config=CONFIG).records == ()
        for command in (
            lambda: unfence_broker(self.image, broker_id, epoch, config=CONFIG),
            lambda: controlled_shutdown(self.image, broker_id, epoch, config=CONFIG),
            lambda: alter_partition(self.image, broker_id=broker_id, broker_epoch=epoch, changes=[], config=CONFIG),
        ):
            assert not self._try(command)

    # --- topics

    @rule(
        name=st.sampled_from(NAMES),
        partition_count=st.integers(1, 3),
        factor=st.integers(1, 4),
        min_insync=st.none() | st.integers(1, 4),
        is_unclean=st.booleans(),
    )
    def create(self, name: Any, partition_count: int, factor: int, min_insync: int | None, is_unclean: bool) -> None:
        configs = {} if min_insync is None else {"min.insync.replicas": str(min_insync)}
        configs |= {"unclean.leader.election.enable": "true"} if is_unclean else {}
        new = NewTopic(name, partition_count, factor, configs=configs)
        self._run(create_topics(self.image, [new], config=CONFIG, new_id=self.ids))

    @rule(name=st.sampled_from(NAMES), min_insync=st.none() | st.integers(1, 4))
    def change_min_insync(self, name: Any, min_insync: int | None) -> None:
        self._configure(name, "min.insync.replicas", None if min_insync is None else str(min_insync))

    @rule(name=st.sampled_from(NAMES), is_unclean=st.booleans())
    def change_unclean(self, name: Any, is_unclean: bool) -> None:
        before = self.image.topic(name)
        is_new = is_unclean and before is not None and not rules_of(self.image, before, CONFIG).is_unclean_allowed
        self._configure(name, "unclean.leader.election.enable", str(is_unclean).lower())
        topic = self.image.topic(name)
        for partition in topic.partitions.values() if is_new and topic else ():
            assert partition.leader != NOBODY or not any(map(self._is_active, partition.replicas))

    def _configure(self, name: Any, key: str, value: str | None) -> None:
        operation = ConfigOperation.DELETE if value is None else ConfigOperation.SET
        change = (Resource(2, name), [ConfigChange(key, operation, value)])
        self._run(with_consequences(self.image, incremental_alter_configs(self.image, [change]), CONFIG))

    # --- leaders

    @rule(data=st.data())
    def propose(self, data: st.DataObject) -> None:
        """By what the leader knows now, or by what some leader knew once."""
        places = [(topic.id, index, partition) for topic, index, partition in self._places()]
        topic_id, index, known = data.draw(st.sampled_from([*places, *self.seen]))
        isr = data.draw(st.permutations(known.replicas).flatmap(lambda p: st.integers(1, len(p)).map(lambda n: p[:n])))
        leader = data.draw(st.sampled_from([known.leader, *known.replicas]))
        if leader not in self.image.brokers:
            return
        proposal = IsrProposal(
            topic_id, index, known.leader_epoch, known.partition_epoch, [(m, self._epoch(m)) for m in isr]
        )
        topic = self.image.topic_by_id(topic_id)
        before = topic.partitions.get(index) if topic else None
        decision = alter_partition(
            self.image, broker_id=leader, broker_epoch=self._epoch(leader), changes=[proposal], config=CONFIG
        )
        self._run(decision, proposed=isr)
        if decision.records:
            assert before is not None
            assert (before.leader, before.leader_epoch, before.partition_epoch) == (
                leader, known.leader_epoch, known.partition_epoch)  # fmt: skip

    @rule(data=st.data())
    def remember(self, data: st.DataObject) -> None:
        topic, index, partition = data.draw(st.sampled_from(self._places()))
        self.seen.append((topic.id, index, partition))

    @rule(election=st.sampled_from([Election.PREFERRED, Election.UNCLEAN]))
    def elect_all(self, election: Election) -> None:
        names = every_partition(self.image.topics.values())
        self._run(
            elect_leaders(self.image, names, election, config=CONFIG), may_be_unclean=election is Election.UNCLEAN
        )

    @rule(data=st.data(), is_former_life=st.booleans())
    def recover(self, data: st.DataObject, is_former_life: bool) -> None:
        """Some of the brokers say how far their logs go; a former life's word does not count."""
        ends: dict[tuple[UUID, int], dict[int, LogEnd]] = {}
        for topic, index, partition in waiting_for_leader(self.image, CONFIG):
            asked = data.draw(st.lists(st.sampled_from(partition.replicas), unique=True))
            ends[topic.id, index] = {
                member: LogEnd(0, data.draw(st.integers(0, 9)), self._epoch(member) - is_former_life)
                for member in asked
            }
        decision = recover_leaders(self.image, ends, config=CONFIG)
        assert not (is_former_life and decision.records)
        self._run(decision, is_recovery=True)

    @rule(data=st.data())
    def find_leaders_where_nobody_in_sync_is_left(self, data: st.DataObject) -> None:
        """Whoever answers, and be it nobody: afterwards none is without a leader that may have any."""
        ends: dict[tuple[UUID, int], dict[int, LogEnd]] = {}
        for topic, index, partition in waiting_for_leader(self.image, CONFIG):
            asked = data.draw(st.lists(st.sampled_from(partition.replicas), unique=True))
            ends[topic.id, index] = {
                member: LogEnd(0, data.draw(st.integers(0, 9)), self._epoch(member)) for member in asked
            }
        self._run(find_leaders(self.image, list(ends), ends, config=CONFIG), is_recovery=True)
        for topic, _index, partition in waiting_for_leader(self.image, CONFIG):
            is_unclean_allowed = rules_of(self.image, topic, CONFIG).is_unclean_allowed
            assert not (is_unclean_allowed and any(map(self._is_active, partition.replicas)))

    @rule(percent=st.integers(0, 100))
    def balance(self, percent: int) -> None:
        self._run(balance_leaders(self.image, percent, config=CONFIG))

    # --- moves

    @rule(data=st.data(), is_cancelled=st.booleans())
    def reassign(self, data: st.DataObject, is_cancelled: bool) -> None:
        topic, index, _ = data.draw(st.sampled_from(self._places()))
        order = data.draw(st.permutations(sorted(self.image.brokers)))
        replicas = None if is_cancelled else tuple(order[: data.draw(st.integers(1, len(order)))])
        before = self.image
        self._run(alter_reassignments(before, [Reassignment(topic.name, index, replicas)], config=CONFIG))
        self._check_move(before, self.image, topic.id, index)

    @rule(data=st.data())
    def catch_up(self, data: st.DataObject) -> None:
        """The legal thing that drives moves on: a leader takes in every live replica."""
        topic, index, partition = data.draw(st.sampled_from(self._places()))
        if partition.leader == NOBODY:
            return
        isr = [member for member in partition.replicas if self._is_active(member)]
        members = [(member, self._epoch(member)) for member in isr]
        proposal = IsrProposal(topic.id, index, partition.leader_epoch, partition.partition_epoch, members)
        before = self.image
        epoch = self._epoch(partition.leader)
        decision = alter_partition(
            before, broker_id=partition.leader, broker_epoch=epoch, changes=[proposal], config=CONFIG
        )
        self._run(decision, proposed=isr)
        now = self.image.topics[topic.id].partitions[index]
        if set(partition.replicas) == set(isr):
            assert not now.is_reassigning
        self._check_move(before, self.image, topic.id, index)

    # --- what holds always

    @invariant()
    def leaders_and_members_are_as_they_must_be(self) -> None:
        waiting = {(topic.id, index) for topic, index, _ in waiting_for_leader(self.image, CONFIG)}
        for topic, index, partition in partitions_where(self.image, lambda _: True):
            isr, elr, replicas = set(partition.isr), set(partition.elr), set(partition.replicas)
            assert partition.leader == NOBODY or partition.leader in isr
            assert isr | elr | set(partition.last_known_elr) <= replicas
            assert not isr & elr
            assert len(isr) == len(partition.isr)
            assert len(replicas) == len(partition.replicas)
            assert all(map(self._is_active, isr))
            assert set(partition.adding) | set(partition.removing) <= replicas
            rules = rules_of(self.image, topic, CONFIG)
            if len(isr) >= rules.needed(partition):
                assert not elr
            if partition.leader == NOBODY:
                assert not isr
                assert not any(map(self._is_active, elr))
                is_electable = rules.is_unclean_allowed and any(map(self._is_active, replicas))
                assert not is_electable or (topic.id, index) in waiting

    @invariant()
    def a_snapshot_says_the_same(self) -> None:
        restored = EMPTY_IMAGE.replay(records_of(self.image), 0)
        assert restored.topics == self.image.topics
        assert restored.brokers == self.image.brokers

    def _run(
        self,
        decision: Decision[Any],
        *,
        may_be_unclean: bool = False,
        is_recovery: bool = False,
        proposed: Sequence[int] = (),
    ) -> None:
        """`proposed`: who is in sync, as the leader says."""
        before = self.image
        self.image = after(before, decision.records)
        for topic, index, now in partitions_where(self.image, lambda _: True):
            old = before.topics[topic.id].partitions.get(index) if topic.id in before.topics else None
            if old is not None and old is not now:
                # A move that ends with a proposal may be led by whom that takes in: the leader said that it is in sync.
                newcomers = proposed if old.is_reassigning and not now.is_reassigning else ()
                self._check_step(topic, old, now, newcomers, may_be_unclean=may_be_unclean, is_recovery=is_recovery)

    def _check_step(
        self,
        topic: TopicImage,
        old: PartitionImage,
        now: PartitionImage,
        newcomers: Sequence[int],
        *,
        may_be_unclean: bool,
        is_recovery: bool,
    ) -> None:
        if topic.name == TELEMETRY_TOPIC:  # it belongs to its broker, which takes it whatever was in it
            assert (now.partition_epoch, now.leader_epoch) >= (old.partition_epoch + 1, old.leader_epoch)
            return
        assert now.partition_epoch == old.partition_epoch + 1
        assert now.leader_epoch in (old.leader_epoch, old.leader_epoch + 1)
        if now.leader != old.leader or not set(old.replicas) <= set(now.replicas):
            assert now.leader_epoch == old.leader_epoch + 1
        is_counted = now.unclean_elections > old.unclean_elections
        is_complete = now.leader == NOBODY or now.leader in (*old.isr, *old.elr, *newcomers)
        is_complete |= is_recovery and not (old.isr or old.elr) and now.leader in old.last_known_elr
        is_allowed = rules_of(self.image, topic, CONFIG).is_unclean_allowed or may_be_unclean
        assert is_complete or now.leader == old.leader or is_counted
        assert not is_counted or (is_allowed and now.isr == (now.leader,) and now.leader_recovery_state == 1)

    def _check_move(self, before: MetadataImage, now: MetadataImage, topic_id: UUID, index: int) -> None:
        """A move takes nobody into an ISR by itself, and does not lower one below min.insync."""
        old, new = before.topics[topic_id].partitions[index], now.topics[topic_id].partitions[index]
        needed = rules_of(now, now.topics[topic_id], CONFIG).needed(new)
        if old.is_reassigning or new.is_reassigning:
            assert len(new.isr) >= min(needed, len(old.isr))

    def _check_unclean_exclusion(self, before: MetadataImage, broker_id: int) -> None:
        for topic, _index, partition in partitions_where(self.image, lambda p: broker_id in p.replicas):
            if topic.name == TELEMETRY_TOPIC or topic.id not in before.topics:
                continue
            assert broker_id not in partition.isr
            assert broker_id not in partition.elr

    # --- help

    def _try(self, command: Any) -> bool:
        try:
            decision = command()
        except BrokerError:
            return False
        self._run(decision)
        return True

    def _epoch(self, broker_id: int) -> int:
        broker = self.image.brokers.get(broker_id)
        return broker.epoch if broker is not None else 10**9

    def _is_active(self, broker_id: int) -> bool:
        broker = self.image.brokers.get(broker_id)
        return broker is not None and broker.is_active

    def _places(self) -> Sequence[Place]:
        return [place for place in partitions_where(self.image, lambda _: True) if place[0].name != TELEMETRY_TOPIC]


TestControllerMachine = ControllerMachine.TestCase
TestControllerMachine.settings = settings(
    max_examples=60, stateful_step_count=40, deadline=None, suppress_health_check=list(HealthCheck)
)
