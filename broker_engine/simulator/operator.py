"""The operator of a simulated cluster: makes topics, moves replicas, asks for elections, in the midst of faults."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from random import Random

from broker_engine.client import Admin, Client, KafkaError, NewTopic
from broker_engine.client.model import TopicPartition
from broker_engine.simulator.clients import SimClients, partitions_of
from broker_engine.simulator.plans import TopicPlan
from broker_engine.simulator.schedule import Fault
from broker_engine.simulator.swarm import Swarm

_HOST = "127.0.1.251"
_CHURN_TOPIC_COUNT = 3
_RETRY_S = 0.2
_SAVE_EVERY_S = 8.0


class Operator:
    def __init__(
        self,
        clients: SimClients,
        swarm: Swarm,
        further_topics: Sequence[TopicPlan] = (),
        features: Mapping[str, int] | None = None,
    ) -> None:
        """`further_topics` are made, and otherwise left alone; `features` are set before them."""
        self._clients = clients
        self._further_topics = further_topics
        self._features = features or {}
        self._swarm = swarm
        self._process = clients.loop.new_process("operator")
        self._random = Random(f"{swarm.seed}/operator")  # noqa: S311 - choices of a simulation
        self._todo: asyncio.Queue[Fault] = asyncio.Queue()
        self._created: list[str] = []
        self._number = 0
        self.has_topics = asyncio.Event()
        self.moved: dict[tuple[str, int], int] = {}

    def start(self) -> None:
        self._clients.loop.spawn(self._process, self._run(), "operator")

    def save_what_can_be_saved(self, find_lost: Callable[[], list[TopicPartition]]) -> None:
        """After the healing: where nobody may lead, the operator takes who is left, as people do in the end."""
        self._clients.loop.spawn(self._process, self._save(find_lost), "unclean elections")

    async def _save(self, find_lost: Callable[[], list[TopicPartition]]) -> None:
        client = await self._clients.connect(self._process, _HOST)
        while True:
            await asyncio.sleep(_SAVE_EVERY_S)
            lost = find_lost()
            if lost:
                try:
                    await Admin(client).elect_leaders(lost, is_unclean=True)
                except KafkaError as error:
                    self._clients.cluster.note(f"operator: unclean election: {error}")

    async def do(self, fault: Fault) -> None:
        self._todo.put_nowait(fault)

    async def _run(self) -> None:
        client = await self._clients.connect(self._process, _HOST)
        if self._features:
            await self._set_features(client)
        await self._create_topics(client)
        self.has_topics.set()
        while True:
            fault = await self._todo.get()
            try:
                await getattr(self, f"_{fault.kind}")(Admin(client), fault)
            except KafkaError as error:
                self._clients.cluster.note(f"operator: {fault.kind}: {error}")

    async def _set_features(self, client: Client) -> None:
        while True:
            try:
                return await Admin(client).update_features(self._features)
            except KafkaError:
                await asyncio.sleep(_RETRY_S)

    async def _create_topics(self, client: Client) -> None:
        wanted = [*self._swarm.topics, *self._further_topics]
        while wanted:
            try:
                results = await Admin(client).create_topics([_new(topic) for topic in wanted])
            except KafkaError:
                await asyncio.sleep(_RETRY_S)
                continue
            left = [topic for topic in wanted if isinstance(results[topic.name], KafkaError)]
            if len(left) == len(wanted):
                await asyncio.sleep(_RETRY_S)
            existing = await self._existing(client)
            wanted = [topic for topic in left if topic.name not in existing]

    async def _existing(self, client: Client) -> frozenset[str]:
        """A request whose answer was lost may have been carried out."""
        try:
            return frozenset(await Admin(client).list_topics())
        except KafkaError:
            return frozenset()

    async def _churn(self, admin: Admin, fault: Fault) -> None:
        """Topics that come and go; nobody reads them."""
        if len(self._created) >= _CHURN_TOPIC_COUNT:
            await admin.delete_topics([self._created.pop(0)])
            return
        self._number += 1
        name = f"churn{self._number % 4}"
        factor = min(3, self._swarm.node_count)
        await admin.create_topics([NewTopic(name, 1 + fault.number % 2, factor)])
        self._created.append(name)

    async def _elect(self, admin: Admin, fault: Fault) -> None:
        await admin.elect_leaders(None)

    async def _elect_unclean(self, admin: Admin, fault: Fault) -> None:
        targets = [TopicPartition(*target) for target in partitions_of(self._swarm.topics)]
        await admin.elect_leaders(targets, is_unclean=True)

    async def _reassign(self, admin: Admin, fault: Fault) -> None:
        """Another set of brokers, as large as before or one smaller or larger; now and then the last move is undone."""
        topic = self._random.choice(self._swarm.topics)
        target = TopicPartition(topic.name, self._random.randrange(topic.partition_count))
        if fault.number % 5 == 0:
            await admin.alter_reassignments({target: None})
            return
        count = max(topic.min_insync, min(self._swarm.node_count, topic.replication_factor + fault.number % 3 - 1))
        await admin.alter_reassignments({target: self._random.sample(self._swarm.broker_ids, count)})


def _new(topic: TopicPlan) -> NewTopic:
    return NewTopic(topic.name, topic.partition_count, topic.replication_factor, topic.configs)
