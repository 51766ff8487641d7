"""Keeps the metadata cache filled: asks for what callers need, and again for what is old or was shown to be wrong."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from broker_engine.client.backoff import backoff_ms
from broker_engine.client.errors import KafkaError, UnknownTopic, error_for
from broker_engine.client.links import Links
from broker_engine.client.metadata import MetadataCache, TopicView
from broker_engine.client.tasks import join
from broker_engine.errors import ErrorCode
from broker_engine.wire.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse

_AGE_CHECKS_PER_AGE = 10


class MetadataRefresher:
    """Requests that come while one is under way share the next one."""

    def __init__(self, links: Links, cache: MetadataCache) -> None:
        self._links = links
        self._cache = cache
        self._config = links.config
        self._wanted: dict[str, bool] = {}  # name -> may the broker create it
        self._next_round: asyncio.Task[None] | None = None
        self._asking = asyncio.Lock()
        self._stale = asyncio.Event()

    def start(self) -> None:
        self._links.tasks.spawn(self._keep_fresh(), "metadata")

    def mark_stale(self, name: str) -> None:
        """An answer showed that the leader has moved, or the topic has changed: ask soon, in the background."""
        self._cache.mark_stale(name)
        self._stale.set()

    async def topic(self, name: str, *, wait_ms: int | None = None, may_create: bool = False) -> TopicView:
        """The topic, asked for until it is known; UnknownTopic (or what the broker says) after `wait_ms`."""
        wait_ms = self._config.unknown_topic_wait_ms if wait_ms is None else wait_ms
        give_up_ms = self._links.clock.monotonic_ms() + wait_ms
        failure_count = 0
        while not self._cache.is_fresh(name, self._links.clock.monotonic_ms()):
            error = await self._try_refresh(name, may_create, give_up_ms)
            if error is None:
                break
            failure_count += 1
            pause_ms = self._backoff_ms(failure_count)
            if not error.retriable or self._links.clock.monotonic_ms() + pause_ms >= give_up_ms:
                raise self._final_error(name, error, wait_ms)
            await asyncio.sleep(pause_ms / 1000)
        view = self._cache.topic(name)
        assert view is not None, "a refresh without an error leaves the topic in the cache"
        return view

    async def _try_refresh(self, name: str, may_create: bool, give_up_ms: int) -> KafkaError | None:
        # However short the wait, one exchange is allowed: 0 means "as things are now", not "do not ask".
        left_ms = max(give_up_ms - self._links.clock.monotonic_ms(), self._config.connect_timeout_ms)
        try:
            async with asyncio.timeout(left_ms / 1000):
                await self.refresh([name], may_create=may_create)
        except TimeoutError:
            return KafkaError(ErrorCode.REQUEST_TIMED_OUT, f"metadata of topic {name!r} did not arrive in time")
        except KafkaError as error:
            return error
        code = self._cache.refusal(name)
        return KafkaError(code, f"topic {name!r}") if code is not None else None

    def _final_error(self, name: str, error: KafkaError, wait_ms: int) -> KafkaError:
        if error.code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            where = ", ".join(self._config.bootstrap)
            text = f"topic {name!r} does not exist on {where} (waited {wait_ms} ms); create it, or check the name"
            return UnknownTopic(text)
        return error

    async def refresh(self, names: Iterable[str], *, may_create: bool = False) -> None:
        """Ask once for these topics, together with whatever others wait for."""
        for name in names:
            self._wanted[name] = self._wanted.get(name, False) or may_create
        if self._next_round is None:
            self._next_round = self._links.tasks.spawn(self._round(), "metadata round")
        await join(self._next_round)

    async def _round(self) -> None:
        async with self._asking:
            self._next_round = None
            wanted, self._wanted = self._wanted, {}
            for may_create in (False, True):
                names = [name for name, flag in wanted.items() if flag is may_create]
                if names or (not wanted and not may_create):
                    await self._ask(names, may_create)
        self._links.notify()

    async def _ask(self, names: list[str], may_create: bool) -> None:
        connection = await self._links.any_connection(self._cache.brokers.values())
        request = MetadataRequest(
            topics=[MetadataRequestTopic(name=name) for name in names], allow_auto_topic_creation=may_create
        )
        response = await connection.ask(request, MetadataResponse)
        if response.error_code != ErrorCode.NONE:
            raise error_for(response.error_code, None, f"metadata from {connection.address}")
        self._cache.apply(response, self._links.clock.monotonic_ms())

    async def _keep_fresh(self) -> None:
        failure_count = 0
        while True:
            await self._wait_until_stale()
            names = self._cache.due_topics(self._links.clock.monotonic_ms())
            if not names:
                continue
            try:
                await self.refresh(names)
                failure_count = 0
            except KafkaError:
                failure_count += 1  # it stays due; links keep the reason for whoever asks
            await asyncio.sleep(self._backoff_ms(max(failure_count, 1)) / 1000)

    async def _wait_until_stale(self) -> None:
        self._stale.clear()
        if self._cache.due_topics(self._links.clock.monotonic_ms()):
            return
        try:
            async with asyncio.timeout(self._config.metadata_age_ms_max / _AGE_CHECKS_PER_AGE / 1000):
                await self._stale.wait()
        except TimeoutError:
            return

    def _backoff_ms(self, failure_count: int) -> int:
        return backoff_ms(
            failure_count,
            base_ms=self._config.retry_backoff_ms,
            ceiling_ms=self._config.retry_backoff_ms_max,
            random_unit=self._links.random_unit,
        )
