"""Clients of a simulated cluster: the real producer and consumer, each a process on a host of its own, with a history.

Values are unique in a run. What a client cannot be sure of goes into the history as `info`.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable, Coroutine, Iterable
from random import Random
from typing import Any

from broker_engine.client import Client, ClientConfig, Consumer, KafkaError, OffsetOutOfRange, Producer, Record
from broker_engine.client.model import RecordMetadata, TopicPartition
from broker_engine.client.offsets import LATEST, list_offsets
from broker_engine.simulator.cluster import SimCluster
from broker_engine.simulator.history import EndOffset, History, Poll, Send
from broker_engine.simulator.node import CLIENT_PORT
from broker_engine.simulator.plans import ProducerPlan, TopicPlan
from broker_engine.simulator.sim_clock import SimClock, SimRandomness
from broker_engine.simulator.sim_net import SimDialer
from broker_engine.simulator.sim_process import Process

DELIVERY_TIMEOUT_MS = 12_000
_REQUEST_TIMEOUT_MS = 4_000
_CONNECT_TIMEOUT_MS = 1_000
_FAILURES_MAX = 12
"""So many in a row, and a producer is made anew, as an application would."""
_PROBE_COUNT = 4


class SimClients:
    def __init__(self, cluster: SimCluster) -> None:
        self.cluster = cluster
        self.loop = cluster.loop
        self.history = History()
        self.values = itertools.count(1)
        self.out_of_range: list[str] = []
        """A reader was told that what it had been about to read does not exist."""
        self.unanswered: dict[int, float] = {}
        """Values sent and not answered yet, and when."""
        self.is_stopping = False
        self._host_number = 0

    # --- processes and connections

    def run(self, name: str, work: Callable[[Process, str], Coroutine[Any, Any, None]]) -> asyncio.Task[None]:
        self._host_number += 1
        process = self.loop.new_process(name)
        return self.loop.spawn(process, work(process, f"127.0.1.{self._host_number}"), name)

    def client(self, process: Process, host: str) -> Client:
        addresses = tuple(f"{node.host}:{CLIENT_PORT}" for node in self.cluster.brokers)
        turn = self._host_number % len(addresses)
        config = ClientConfig(
            bootstrap=addresses[turn:] + addresses[:turn],
            client_id=process.name,
            request_timeout_ms=_REQUEST_TIMEOUT_MS,
            connect_timeout_ms=_CONNECT_TIMEOUT_MS,
        )
        return Client(
            config,
            dialer=SimDialer(self.cluster.net, process, host),
            clock=SimClock(self.loop),
            randomness=SimRandomness(f"{self.loop.seed}/{process.name}"),
        )

    async def connect(self, process: Process, host: str) -> Client:
        while True:
            client = self.client(process, host)
            try:
                await client.start()
            except KafkaError:
                await client.close()
                await asyncio.sleep(0.2)
            else:
                return client

    # --- producers

    def start_producer(self, plan: ProducerPlan) -> asyncio.Task[None]:
        return self.run(plan.name, lambda process, host: self._produce(plan, process, host))

    async def _produce(self, plan: ProducerPlan, process: Process, host: str) -> None:
        random = Random(f"{self.loop.seed}/{plan.name}/values")  # noqa: S311 - a workload, nothing secret
        client = await self.connect(process, host)
        sender = _Sender(self, plan, client, random)
        while not self.is_stopping:
            await sender.send_some()
            await asyncio.sleep(random.expovariate(1 / plan.pause_s))
        await sender.close()
        await client.close()

    # --- consumers

    def start_consumer(self, name: str, topics: Iterable[TopicPlan]) -> asyncio.Task[None]:
        return self.run(name, lambda process, host: self._consume(name, tuple(topics), process, host))

    async def _consume(self, name: str, topics: tuple[TopicPlan, ...], process: Process, host: str) -> None:
        client = await self.connect(process, host)
        consumer = Consumer(client, max_wait_ms=300)
        consumer.assign(dict.fromkeys(partitions_of(topics), "earliest"))
        next_ends_s = self.loop.now_s
        while not self.is_stopping:
            await self._poll(name, consumer)
            if self.loop.now_s >= next_ends_s:
                next_ends_s = self.loop.now_s + self.cluster.swarm.ends_every_s
                await self._ask_ends(name, client, topics)
        await consumer.close()
        await client.close()

    async def _poll(self, name: str, consumer: Consumer) -> list[Record]:
        try:
            records = await consumer.poll(400)
        except OffsetOutOfRange as error:
            self.out_of_range.append(f"{name}: {error}")
            self.history.ok(name, "assign", time=self.loop.now_s)
            consumer.assign(dict.fromkeys(consumer.assignment, "earliest"))
            return []
        except KafkaError:
            await asyncio.sleep(0.1)
            return []
        for target, some in itertools.groupby(records, key=lambda record: (record.topic, record.partition)):
            read = tuple((record.offset, value_of(record.value)) for record in some)
            self.history.ok(name, "poll", [Poll(target, read)], time=self.loop.now_s)
        return records

    async def _ask_ends(self, name: str, client: Client, topics: tuple[TopicPlan, ...]) -> None:
        wanted = {TopicPartition(*target): LATEST for target in partitions_of(topics)}
        asked = [EndOffset((target.topic, target.partition)) for target in wanted]
        asker = f"{name}-ends"
        self.history.invoke(asker, "list_offsets", asked, time=self.loop.now_s)
        try:
            found = await list_offsets(client, wanted)
        except KafkaError:
            self.history.info(asker, "list_offsets", asked, time=self.loop.now_s)
            return
        ends = [EndOffset((target.topic, target.partition), answer.offset) for target, answer in found.items()]
        self.history.ok(asker, "list_offsets", ends, time=self.loop.now_s)

    # --- the end

    async def probe(self, topics: Iterable[TopicPlan]) -> dict[tuple[str, int], float]:
        """When nothing is wrong: how long a record waits for its acknowledgement, at worst of a few, by partition."""
        client = await self.connect(self.loop.current, "127.0.1.252")
        producer = Producer(client, linger_ms=0, auto_create_topics=False)
        slowest_s: dict[tuple[str, int], float] = {}
        plans = {plan.name: plan for plan in topics}
        for target in partitions_of(plans.values()):
            for number in range(_PROBE_COUNT):
                began_s, value = self.loop.now_s, next(self.values)
                self.history.invoke("probe", "send", [Send(target, value)], time=began_s)
                key = plans[target[0]].key_of(value)
                sent = await producer.send(target[0], b"%d " % value, key=key, partition=target[1])
                self.history.ok("probe", "send", [Send(target, value, sent.offset)], time=self.loop.now_s)
                if number:  # the first one finds its way
                    slowest_s[target] = max(slowest_s.get(target, 0.0), self.loop.now_s - began_s)
        await producer.close()
        await client.close()
        return slowest_s

    async def read_all(self, topics: Iterable[TopicPlan]) -> None:
        """Every partition from its beginning to its end."""
        process, host = self.loop.current, "127.0.1.250"
        client = await self.connect(process, host)
        wanted = {TopicPartition(*target): LATEST for target in partitions_of(topics)}
        ends = await list_offsets(client, wanted)
        consumer = Consumer(client, max_wait_ms=200)
        consumer.assign(dict.fromkeys(wanted, "earliest"))
        while any(consumer.positions.get(target, 0) < answer.offset for target, answer in ends.items()):
            await self._poll("final", consumer)
        await consumer.close()
        await client.close()


class _Sender:
    """One producer's application, over the lives of its Producer."""

    def __init__(self, clients: SimClients, plan: ProducerPlan, client: Client, random: Random) -> None:
        self._clients = clients
        self._plan = plan
        self._client = client
        self._random = random
        self._failure_count = 0
        self._producer = self._new_producer()

    def _new_producer(self) -> Producer:
        return Producer(
            self._client,
            acks=self._plan.acks,
            idempotent=self._plan.is_idempotent,
            linger_ms=self._plan.linger_ms,
            delivery_timeout_ms=DELIVERY_TIMEOUT_MS,
            max_block_ms=DELIVERY_TIMEOUT_MS,
            auto_create_topics=False,
        )

    async def send_some(self) -> None:
        if self._failure_count >= _FAILURES_MAX:
            self._failure_count = 0
            await self._producer.close(timeout_ms=0)
            self._producer = self._new_producer()
        partition = self._random.randrange(self._plan.topic.partition_count)
        for _ in range(self._random.randint(1, self._plan.burst_max)):
            await self._send(partition)

    async def _send(self, partition: int) -> None:
        clients, target = self._clients, (self._plan.topic.name, partition)
        value = next(clients.values)
        clients.history.invoke(self._plan.name, "send", [Send(target, value)], time=clients.loop.now_s)
        clients.unanswered[value] = clients.loop.now_s
        padding = b"." * self._random.choice([0, 0, 20, 300])
        try:
            key, text = self._plan.topic.key_of(value), b"%d %s" % (value, padding)
            sent = await self._producer.enqueue(target[0], text, key=key, partition=partition)
        except KafkaError as error:
            self._note(target, value, None, error)
            return
        sent.add_done_callback(lambda done: self._note(target, value, *_outcome(done)))

    def _note(
        self, target: tuple[str, int], value: int, metadata: RecordMetadata | None, error: BaseException | None
    ) -> None:
        clients = self._clients
        clients.unanswered.pop(value, None)
        if metadata is not None:
            self._failure_count = 0
            sent = [Send(target, value, metadata.offset)]
            clients.history.ok(self._plan.name, "send", sent, time=clients.loop.now_s)
        else:
            self._failure_count += 1
            clients.history.info(self._plan.name, "send", [Send(target, value)], time=clients.loop.now_s)

    async def close(self) -> None:
        await self._producer.close(timeout_ms=2 * DELIVERY_TIMEOUT_MS)


def _outcome(done: asyncio.Future[RecordMetadata]) -> tuple[RecordMetadata | None, BaseException | None]:
    error = done.exception()
    return (None, error) if error is not None else (done.result(), None)


def partitions_of(topics: Iterable[TopicPlan]) -> list[tuple[str, int]]:
    return [(topic.name, index) for topic in topics for index in range(topic.partition_count)]


def value_of(data: bytes | None) -> int:
    assert data is not None
    return int(data.partition(b" ")[0])
