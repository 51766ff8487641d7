"""Invariant 31: a partition has at most one owner, whatever is lost, late or dead.

Members are honest and slow: they hold what they were told, give it up some time later, and hear only some answers. The
coordinator dies now and then, and another one reads the log.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from uuid import UUID

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from broker_engine.errors import BrokerError, ErrorCode
from broker_engine.groups.consumer.member import HeartbeatAnswer
from broker_engine.groups.consumer.partitions import Partitions, places
from broker_engine.groups.states import GroupState
from tests.broker_engine.groups.consumers import ConsumerBench, FakeTopics

Place = tuple[UUID, int]
NAMES = st.sampled_from("abcd")
TOPICS = ("orders", "bills")
GONE = {ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.UNKNOWN_MEMBER_ID}


@dataclass
class Client:
    """A member as it sees itself."""

    name: str
    life: int = 0
    epoch: int = 0
    held: set[Place] = field(default_factory=set)
    wanted: set[Place] = field(default_factory=set)
    is_static: bool = False
    topics: frozenset[str] = frozenset(TOPICS)
    is_heard: bool = True
    """False: the last answer was lost, so the next request says everything."""

    @property
    def id(self) -> str:
        return f"{self.name}-{self.life}"

    def forget(self) -> None:
        self.epoch, self.held, self.wanted, self.is_heard = 0, set(), set(), True

    def hear(self, answer: HeartbeatAnswer) -> None:
        self.epoch, self.is_heard = answer.epoch, True
        if answer.assignment is not None:
            self.wanted = set(places(answer.assignment))
            self.held |= self.wanted  # at once, before it has given up anything: the worst that a client may do


class Owners(RuleBasedStateMachine):
    @initialize(interval_ms=st.sampled_from([0, 1_000]))
    def begin(self, interval_ms: int) -> None:
        self.bench = ConsumerBench(FakeTopics(orders=4, bills=2), assignment_interval_ms=interval_ms)
        self.clients = {name: Client(name, is_static=name in "ab") for name in "abcd"}
        self.sizes = {"orders": 4, "bills": 2}

    @rule(name=NAMES, is_lost=st.booleans(), says_owned=st.booleans())
    def beat(self, name: str, is_lost: bool, says_owned: bool) -> None:
        client = self.clients[name]
        is_full = client.epoch == 0 or not client.is_heard
        owned = as_partitions(client.held) if says_owned or is_full else None
        fields = {"rebalance_timeout_ms": 20_000, "topic_names": client.topics} if is_full else {}
        try:
            answer = self.bench.ask(client.id, client.epoch, instance_id=self.instance(client), owned=owned, **fields)
        except BrokerError as error:
            self.on_refusal(client, error.code)
            return
        if is_lost:
            client.is_heard = False
        else:
            client.hear(answer)

    def on_refusal(self, client: Client, code: ErrorCode) -> None:
        assert code in GONE | {ErrorCode.FENCED_INSTANCE_ID, ErrorCode.UNRELEASED_INSTANCE_ID}, code
        client.forget()

    @rule(name=NAMES)
    def give_up(self, name: str) -> None:
        client = self.clients[name]
        client.held &= client.wanted

    @rule(name=NAMES)
    def leave(self, name: str) -> None:
        client = self.clients[name]
        if client.epoch:
            client_id = client.id
            client.forget()
            client.life += 1
            self.bench.code(client_id, -1, instance_id=self.instance(client))

    @rule(name=st.sampled_from("ab"))
    def go_for_a_while(self, name: str) -> None:
        client = self.clients[name]
        if client.epoch:
            client_id = client.id
            client.forget()
            client.life += 1
            self.bench.code(client_id, -2, instance_id=self.instance(client))

    @rule(name=NAMES)
    def die(self, name: str) -> None:
        """Without a word. Its next life has another id."""
        client = self.clients[name]
        client.forget()
        client.life += 1

    @rule(name=NAMES, topics=st.frozensets(st.sampled_from(TOPICS), min_size=1))
    def subscribe(self, name: str, topics: frozenset[str]) -> None:
        self.clients[name].topics = topics
        self.clients[name].is_heard = False

    @rule(topic=st.sampled_from(TOPICS))
    def grow(self, topic: str) -> None:
        self.sizes[topic] = min(self.sizes[topic] + 1, 8)
        self.bench.topics.change(**{topic: self.sizes[topic]})

    @rule(topic=st.sampled_from(TOPICS))
    def make_again(self, topic: str) -> None:
        self.bench.topics.change(**{topic: 0})
        self.sizes[topic] = 2
        self.bench.topics.change(**{topic: 2})

    @rule(wait_ms=st.sampled_from([100, 1_000, 5_000, 21_000, 46_000]))
    def wait(self, wait_ms: int) -> None:
        self.bench.wait(wait_ms)

    @rule()
    def fail_over(self) -> None:
        self.bench.fail_over()

    @precondition(lambda self: bool(self.bench.group.members))
    @rule()
    def settle(self) -> None:
        """Nothing is lost for longer than a session: then everything that is read has an owner, and all is stable."""
        for _ in range(30):
            self.bench.wait(2_000)
            for name in sorted(self.clients):
                self.beat(name, is_lost=False, says_owned=True)
                self.give_up(name)
        assert self.bench.group.state is GroupState.STABLE
        held = sorted(place for client in self.clients.values() for place in client.held)
        assert held == sorted(self.everything())

    def everything(self) -> set[Place]:
        read = {name for client in self.clients.values() if client.epoch for name in client.topics}
        found = [self.bench.topics.find(name) for name in sorted(read)]
        return {(topic.id, index) for topic in found if topic is not None for index in range(topic.partition_count)}

    @staticmethod
    def instance(client: Client) -> str | None:
        return f"i-{client.name}" if client.is_static else None

    @invariant()
    def one_owner(self) -> None:
        owners: dict[Place, str] = {}
        for member in self.bench.group.members.values():
            for part in (member.standing.assigned, member.standing.revoking):
                for place in places(part):
                    assert owners.setdefault(place, member.id) == member.id, f"{place} has two owners"
        for client in self.clients.values():
            known = self.bench.group.members.get(client.id)
            # Who is not a member any more, or missed more than one epoch, is fenced with its next word or commit.
            if known is not None and client.epoch in (known.epoch, known.standing.previous_epoch):
                for place in client.held:
                    assert owners.get(place) == client.id, f"{client.id} holds {place}, which is {owners.get(place)}'s"


def as_partitions(held: set[Place]) -> Partitions:
    by_topic: dict[UUID, set[int]] = {}
    for topic_id, index in held:
        by_topic.setdefault(topic_id, set()).add(index)
    return {topic_id: frozenset(indexes) for topic_id, indexes in by_topic.items()}


TestOwners = Owners.TestCase
TestOwners.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
