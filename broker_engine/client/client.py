"""The shared part of producer, consumer and admin: connections, metadata, and calls that need neither of them.

Safe to share between all tasks of one event loop. Not safe across threads: every call must come from the loop that
called `start`.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from types import TracebackType
from typing import Self, TypeVar

from broker_engine.client.backoff import backoff_ms
from broker_engine.client.config import BrokerAddress, ClientConfig
from broker_engine.client.errors import KafkaError, UnknownTopic
from broker_engine.client.fetching import Isolation
from broker_engine.client.links import Links
from broker_engine.client.metadata import MetadataCache, TopicView
from broker_engine.client.model import FetchedPartition, TopicPartition
from broker_engine.client.refresher import MetadataRefresher
from broker_engine.client.stateless import FetchQuery, fetch_once
from broker_engine.client.tasks import TaskSet
from broker_engine.clock import Clock, Randomness, SystemClock, SystemRandomness
from broker_engine.errors import ErrorCode
from broker_engine.net.sockets import SocketDialer
from broker_engine.net.stream import Dialer
from broker_engine.wire.schema import Message

R = TypeVar("R", bound=Message)


class Client:
    def __init__(
        self,
        config: ClientConfig,
        *,
        dialer: Dialer | None = None,
        clock: Clock | None = None,
        randomness: Randomness | None = None,
    ) -> None:
        self.config = config
        self.randomness: Randomness = randomness if randomness is not None else SystemRandomness()
        self.clock: Clock = clock if clock is not None else SystemClock()
        self.metadata = MetadataCache(age_ms_max=config.metadata_age_ms_max)
        self._tasks = TaskSet(f"client {config.client_id}")
        self.links = Links(
            config, dialer if dialer is not None else SocketDialer(), self.clock, self._tasks, self.randomness.unit
        )
        self._refresher = MetadataRefresher(self.links, self.metadata)
        self._is_started = False

    async def start(self) -> None:
        """Connect to one of the bootstrap brokers and learn of the others. Raises if none answers or signs us in."""
        if not self._is_started:
            await self._refresher.refresh([])
            self._refresher.start()
            self._is_started = True

    async def close(self) -> None:
        """End every task and connection of this client. Close producers and consumers first."""
        await self.links.close()
        await self._tasks.close()

    async def __aenter__(self) -> Self:
        try:
            await self.start()
        except BaseException:
            await self.close()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    # Metadata

    async def topic(self, name: str, *, wait_ms: int | None = None, may_create: bool = False) -> TopicView:
        """A topic as last seen; asked for until it is known, at most `wait_ms` (default: `unknown_topic_wait_ms`)."""
        return await self._refresher.topic(name, wait_ms=wait_ms, may_create=may_create)

    def mark_stale(self, name: str) -> None:
        self._refresher.mark_stale(name)

    async def refresh_brokers(self) -> None:
        """Ask now which brokers there are and which of them is the controller."""
        await self._refresher.refresh([])

    async def leader_of(self, target: TopicPartition) -> int:
        """The leader's node id. LEADER_NOT_AVAILABLE while there is none, UnknownTopic for a partition that is not."""
        view = await self.topic(target.topic)
        if target.partition not in view.partitions:
            text = f"topic {target.topic!r} has {view.partition_count} partitions, there is no {target.partition}"
            raise UnknownTopic(text)
        leader = self.metadata.leader(target)
        if leader is None:
            self.mark_stale(target.topic)
            raise KafkaError(ErrorCode.LEADER_NOT_AVAILABLE, f"{target} has no leader at the moment")
        return leader

    def address_of(self, node: int) -> BrokerAddress:
        address = self.metadata.brokers.get(node)
        if address is None:
            raise KafkaError(ErrorCode.BROKER_NOT_AVAILABLE, f"broker {node} is not known to the cluster")
        return address

    # Requests

    async def ask(self, node: int, request: Message, answer: type[R], *, timeout_ms: int | None = None) -> R:
        """One request to one broker on its shared connection; not repeated."""
        connection = await self.links.link(self.address_of(node)).get()
        return await connection.ask(request, answer, timeout_ms=timeout_ms)

    async def ask_any(self, request: Message, answer: type[R], *, timeout_ms: int | None = None) -> R:
        connection = await self.links.any_connection(self.metadata.brokers.values())
        return await connection.ask(request, answer, timeout_ms=timeout_ms)

    async def attempts(self) -> AsyncIterator[int]:
        """Counts tries, with a backoff between them, until `request_timeout_ms` is over. At least one, then two."""
        give_up_ms = self.clock.monotonic_ms() + self.config.request_timeout_ms
        attempt = 0
        while attempt < 2 or self.clock.monotonic_ms() < give_up_ms:
            yield attempt
            attempt += 1
            await asyncio.sleep(self.retry_backoff_ms(attempt) / 1000)

    def retry_backoff_ms(self, failure_count: int) -> int:
        return backoff_ms(
            failure_count,
            base_ms=self.config.retry_backoff_ms,
            ceiling_ms=self.config.retry_backoff_ms_max,
            random_unit=self.randomness.unit,
        )

    @staticmethod
    def may_retry(error: KafkaError) -> bool:
        """UnknownTopic has been waited for already."""
        return error.retriable and not isinstance(error, UnknownTopic)

    # Stateless fetch

    async def fetch_once(
        self,
        topic: str,
        partition: int,
        offset: int,
        *,
        max_bytes: int = 1 << 20,
        max_wait_ms: int = 0,
        min_bytes: int = 1,
        max_records: int | None = None,
        isolation: Isolation = "read_uncommitted",
    ) -> FetchedPartition:
        """Read from one partition without keeping anything for the next call; waits for data up to `max_wait_ms`.

        OffsetOutOfRange tells the valid range. At least one batch comes back whole, even above `max_bytes`.
        """
        query = FetchQuery(
            TopicPartition(topic, partition), offset, max_bytes, max_wait_ms, min_bytes, max_records, isolation
        )
        return await fetch_once(self, query)
