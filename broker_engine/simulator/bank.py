"""A bank in a simulated cluster: transfers are read from one topic, their entries written into another, in transactions
that also carry the readers' offsets. Every transfer is entered once, with two entries whose sum is nothing, whatever
happens to workers and brokers.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random

from broker_engine.client import (
    Client,
    Consumer,
    GroupIdentity,
    GroupMember,
    KafkaError,
    Producer,
    Record,
    TopicPartition,
    TransactionalProducer,
)
from broker_engine.client.offsets import LATEST, list_offsets
from broker_engine.simulator.clients import SimClients, partitions_of, value_of
from broker_engine.simulator.coordination_plan import BankPlan
from broker_engine.simulator.group_history import GroupHistory
from broker_engine.simulator.history import Epoch, History, Poll, Send
from broker_engine.simulator.history.rows import Op
from broker_engine.simulator.lives import Life, Place
from broker_engine.simulator.sim_process import Process

GROUP = "bank"
_TRANSFER_EVERY_S = 0.3
_DELIVERY_TIMEOUT_MS = 6_000
_ACCOUNT_COUNT = 5
_RETRY_S = 0.2
_HESITATION_S_MAX = 2.0

Violate = Callable[[str, str], None]


@dataclass(slots=True)
class _Desk:
    """What one worker has at hand, from assignment to assignment."""

    life: Life
    client: Client
    consumer: Consumer
    random: Random
    hesitating: Random
    """For itself: what else is drawn does not depend on it."""
    identity: GroupIdentity = field(default_factory=lambda: GroupIdentity(GROUP))
    """Of the generation in which its partitions, and where to begin, were learnt."""
    is_astray: bool = False
    """It is not known where the group has got to: to be asked again before anything is read."""
    at_work: asyncio.Lock = field(default_factory=asyncio.Lock)
    """A rebalance waits for the transaction, as where one thread polls and works: else one that is committed later, by
    a member who came back to its generation, would be done again."""


class Bank:
    def __init__(
        self, clients: SimClients, plan: BankPlan, offsets: GroupHistory, violate: Violate, *, first_place: int
    ) -> None:
        self.history = History()
        self.acked: dict[int, None] = {}
        """Transfers that the till was told are in."""
        self.entered: dict[int, None] = {}
        """Transfers whose entries the auditor has read."""
        self.is_closing = False
        """No transfers come any more, once the till has an answer to the last one."""
        self._is_till_closed = False
        self._clients = clients
        self._plan = plan
        self._offsets = offsets
        self._violate = violate
        self.places = [
            Place(clients, f"w{number}", first_place + number, self._work, life_s=plan.life_s)
            for number in range(plan.worker_count)
        ]

    def start(self) -> list[asyncio.Task[None]]:
        loop = self._clients.loop
        workers = [loop.spawn(loop.world, place.run(), place.name) for place in self.places]
        return [*workers, self._clients.run("till", self._sell), self._clients.run("auditor", self._audit)]

    def is_settled(self) -> str | None:
        missing = [transfer for transfer in self.acked if transfer not in self.entered]
        if not self._is_till_closed:
            return "the till is not closed"
        return f"{len(missing)} transfers wait to be entered: {missing[:5]}" if missing else None

    def _now_s(self) -> float:
        return self._clients.loop.now_s

    # --- where transfers come from

    async def _sell(self, process: Process, host: str) -> None:
        random = Random(f"{self._clients.loop.seed}/till")  # noqa: S311 - a workload, nothing secret
        client = await self._clients.connect(process, host)
        producer = Producer(client, linger_ms=0, delivery_timeout_ms=_DELIVERY_TIMEOUT_MS, auto_create_topics=False)
        while not self.is_closing and not self._clients.is_stopping:
            await self._order(producer, random)
            await asyncio.sleep(random.expovariate(1 / _TRANSFER_EVERY_S))
        await producer.close(timeout_ms=2 * _DELIVERY_TIMEOUT_MS)
        self._is_till_closed = True
        await client.close()

    async def _order(self, producer: Producer, random: Random) -> None:
        value = next(self._clients.values)
        target = (self._plan.transfers.name, random.randrange(self._plan.transfers.partition_count))
        source, goal = random.sample(range(_ACCOUNT_COUNT), 2)
        text = b"%d %d %d %d" % (value, source, goal, random.randint(1, 99))
        self.history.invoke("till", "send", [Send(target, value)], time=self._now_s())
        try:
            sent = await producer.send(target[0], text, partition=target[1])
        except KafkaError:
            self.history.info("till", "send", [Send(target, value)], time=self._now_s())
            return
        self.history.ok("till", "send", [Send(target, value, sent.offset)], time=self._now_s())
        self.acked[value] = None

    # --- who enters them

    async def _work(self, life: Life) -> None:
        client = await self._clients.connect(life.process, life.host)
        random = Random(f"{self._clients.loop.seed}/{life.name}/work")  # noqa: S311 - a workload, nothing secret
        consumer = Consumer(client, max_wait_ms=200, isolation="read_committed")
        hesitating = Random(f"{self._clients.loop.seed}/{life.name}/hesitation")  # noqa: S311 - a workload, nothing secret
        desk = _Desk(life, client, consumer, random, hesitating)

        async def on_assigned(partitions: tuple[TopicPartition, ...]) -> None:
            async with desk.at_work:
                self._offsets.assigned(member.identity, partitions)
                desk.identity = member.identity
                await self._begin_where_it_was_left(desk, member, partitions)

        async def on_revoked(partitions: tuple[TopicPartition, ...]) -> None:
            async with desk.at_work:
                desk.identity = GroupIdentity(GROUP)
                consumer.assign({})

        member = GroupMember(
            client,
            GROUP,
            [self._plan.transfers.name],
            session_timeout_ms=self._plan.session_timeout_ms,
            rebalance_timeout_ms=2 * self._plan.session_timeout_ms,
            heartbeat_interval_ms=self._plan.session_timeout_ms // 4,
            on_assigned=on_assigned,
            on_revoked=on_revoked,
        )
        member.start()
        producer: TransactionalProducer | None = None
        while not life.is_leaving:
            if producer is None:
                producer = await self._new_producer(life, client)
            elif not await self._serve(desk, member, producer):
                await producer.close()
                producer = None
        await member.close()
        if producer is not None:
            await producer.close()
        await consumer.close()
        await client.close()

    async def _begin_where_it_was_left(
        self, desk: _Desk, member: GroupMember, partitions: tuple[TopicPartition, ...]
    ) -> None:
        call = self._offsets.read(desk.life.name, GROUP, partitions)
        found = await member.committed(partitions)
        self._offsets.found(call, found)
        self.history.ok(desk.life.name, "assign", time=self._now_s())
        desk.consumer.assign({target: found.get(target, 0) for target in partitions})

    async def _new_producer(self, life: Life, client: Client) -> TransactionalProducer | None:
        """The place's id: whoever had it before is fenced."""
        producer = TransactionalProducer(
            client,
            f"bank-{life.name.partition('.')[0]}",
            transaction_timeout_ms=self._plan.transaction_timeout_ms,
            linger_ms=0,
            delivery_timeout_ms=_DELIVERY_TIMEOUT_MS,
            auto_create_topics=False,
        )
        self.history.invoke(life.name, "init", time=self._now_s())
        try:
            await producer.init()
        except KafkaError:
            await producer.close()
            await asyncio.sleep(_RETRY_S)
            return None
        self.history.ok(life.name, "init", [_epoch(producer)], time=self._now_s())
        return producer

    async def _serve(self, desk: _Desk, member: GroupMember, producer: TransactionalProducer) -> bool:
        """A few transfers. False: this producer is of no further use."""
        if desk.is_astray:
            async with desk.at_work:
                await self._go_back(desk, member)
            return True
        identity = desk.identity
        try:
            records = await desk.consumer.poll(300, desk.random.randint(1, self._plan.batch_max))
        except KafkaError:
            await asyncio.sleep(_RETRY_S)
            return True
        if not records:
            return True
        async with desk.at_work:
            is_up_to_date = desk.identity is identity  # else the group went on while we read
            if not is_up_to_date or not await _Transaction(self, desk, producer, identity, records).run():
                await self._go_back(desk, member)
        return producer.phase.name == "READY"

    async def _go_back(self, desk: _Desk, member: GroupMember) -> None:
        """What was read was not entered, or nobody knows: begin again where the group has got to."""
        try:
            await self._begin_where_it_was_left(desk, member, member.assignment)
        except KafkaError:
            desk.is_astray = True
            desk.consumer.assign({})
            await asyncio.sleep(_RETRY_S)
        else:
            desk.is_astray = False

    # --- who looks at it

    async def _audit(self, process: Process, host: str) -> None:
        client = await self._clients.connect(process, host)
        consumer = Consumer(client, max_wait_ms=300, isolation="read_committed")
        consumer.assign(dict.fromkeys(partitions_of([self._plan.ledger]), "earliest"))
        while not self._clients.is_stopping:
            for record in await self._poll("auditor", consumer):
                self.entered[entry_of(record)[0]] = None
        await consumer.close()
        await client.close()

    async def _poll(self, name: str, consumer: Consumer) -> list[Record]:
        try:
            records = await consumer.poll(400)
        except KafkaError:
            await asyncio.sleep(_RETRY_S)
            return []
        for poll in polls_of(records):
            self.history.ok(name, "poll", [poll], time=self._now_s())
        return records

    async def read_all(self) -> None:
        """Everything that is committed, once more from the beginning, and the sums."""
        client = await self._clients.connect(self._clients.loop.current, "127.0.1.249")
        wanted = {
            TopicPartition(*target): LATEST for target in partitions_of([self._plan.transfers, self._plan.ledger])
        }
        ends = await list_offsets(client, wanted, isolation="read_committed")
        consumer = Consumer(client, max_wait_ms=200, isolation="read_committed")
        consumer.assign(dict.fromkeys(wanted, "earliest"))
        entries: list[Record] = []
        while any(consumer.positions.get(target, 0) < answer.offset for target, answer in ends.items()):
            records = await self._poll("final", consumer)
            entries += [record for record in records if record.topic == self._plan.ledger.name]
        await consumer.close()
        await client.close()
        self._check_books(entries)

    def _check_books(self, entries: list[Record]) -> None:
        amounts: dict[int, list[int]] = {}
        for transfer, _, amount in map(entry_of, entries):
            amounts.setdefault(transfer, []).append(amount)
        for transfer, pair in amounts.items():
            if len(pair) != 2 or pair[0] + pair[1]:
                self._violate("36 all of a transaction, once", f"transfer {transfer} has the entries {pair}")
        missing = [transfer for transfer in self.acked if transfer not in amounts]
        if missing:
            self._violate("36 every transfer is entered", f"without entries: {missing[:5]} ({len(missing)})")
        total = sum(itertools.chain.from_iterable(amounts.values()))
        if total:
            self._violate("39 the sum never changes", f"it is {total}")


class _Transaction:
    """Some transfers, entered together with the offsets behind them."""

    def __init__(
        self,
        bank: Bank,
        desk: _Desk,
        producer: TransactionalProducer,
        identity: GroupIdentity,
        records: list[Record],
    ) -> None:
        self._bank = bank
        self._desk = desk
        self._producer = producer
        self._identity = identity
        self._records = records
        self._sends: list[tuple[Send, bytes]] = []
        self._offsets = {TopicPartition(record.topic, record.partition): record.offset + 1 for record in records}
        self._epoch = _epoch(producer)

    async def run(self) -> bool:
        """Is it committed for sure?"""
        bank, name = self._bank, self._desk.life.name
        self._draw_entries()
        bank.history.invoke(name, "txn", self._ops(), time=bank._now_s())
        self._producer.begin()
        try:
            await self._fill()
        except KafkaError:
            bank.history.fail(name, "txn", self._ops(), time=bank._now_s())
            await self._abort()
            return False
        if self._desk.random.random() < bank._plan.abort_ratio:
            bank.history.fail(name, "txn", self._ops(), time=bank._now_s())
            await self._abort()
            return False
        return await self._commit()

    def _draw_entries(self) -> None:
        random, ledger = self._desk.random, self._bank._plan.ledger
        for record in self._records:
            assert record.value is not None
            transfer, source, goal, amount = map(int, record.value.split())
            for account, change in ((source, -amount), (goal, amount)):
                value = next(self._bank._clients.values)
                target = (ledger.name, random.randrange(ledger.partition_count))
                self._sends.append((Send(target, value), b"%d %d %d %d" % (value, transfer, account, change)))

    def _ops(self) -> list[Op]:
        return [self._epoch, *polls_of(self._records), *(send for send, _ in self._sends)]

    async def _fill(self) -> None:
        """Records, a pause now and then, the offsets, and all of it acknowledged: nothing of it is committed yet."""
        random, plan = self._desk.random, self._bank._plan
        is_dawdling = random.random() < plan.dawdle_ratio and not self._bank.is_closing
        for number, (send, text) in enumerate(self._sends):
            self._producer.send_nowait(send.partition[0], text, partition=send.partition[1])
            if is_dawdling and number == 0:
                await self._producer.flush()
                await asyncio.sleep(plan.transaction_timeout_ms / 1000 * random.uniform(0.5, 2.5))
        await self._producer.send_offsets(self._offsets, self._identity)
        await self._producer.flush()
        if self._desk.hesitating.random() < plan.hesitation_ratio and not self._bank.is_closing:
            await asyncio.sleep(self._desk.hesitating.uniform(0.1, _HESITATION_S_MAX))

    async def _commit(self) -> bool:
        bank, name = self._bank, self._desk.life.name
        bank.history.invoke(name, "commit", time=bank._now_s())
        call = bank._offsets.commit(name, self._identity, self._offsets)
        try:
            await self._producer.commit()
        except KafkaError:
            bank.history.info(name, "txn", self._ops(), time=bank._now_s())
            return False
        bank.history.ok(name, "txn", self._ops(), time=bank._now_s())
        bank._offsets.committed(call, is_fenced_by_group=False)
        if self._producer.is_version_2 and _epoch(self._producer) == self._epoch:
            bank._violate("38 each transaction has an epoch of its own", f"{name} keeps {self._epoch}")
        return True

    async def _abort(self) -> None:
        """If that is not answered either, the next producer of the id sees to it."""
        try:
            await self._producer.abort()
        except KafkaError:
            return


def _epoch(producer: TransactionalProducer) -> Epoch:
    assert producer.identity is not None
    return Epoch(producer.transactional_id, producer.identity.producer_id, producer.identity.epoch)


def polls_of(records: list[Record]) -> list[Poll]:
    """Neighbours of one partition are one poll."""
    grouped = itertools.groupby(records, key=lambda record: (record.topic, record.partition))
    return [Poll(target, tuple((record.offset, value_of(record.value)) for record in some)) for target, some in grouped]


def entry_of(record: Record) -> tuple[int, int, int]:
    """Transfer, account, amount."""
    assert record.value is not None
    _, transfer, account, amount = map(int, record.value.split())
    return transfer, account, amount
