"""What members of both kinds of groups have in common: the life of a member, its offsets, its own connection.

    async def on_assigned(partitions): consumer.assign(await starts_of(partitions))
    async with GroupMember(client, "billing", ["orders"], on_assigned=on_assigned, on_revoked=...) as member:
        await member.wait_assigned()
        ...
        await member.commit({TopicPartition("orders", 0): 17})

A member gives back partitions by `on_revoked`, which may still commit; where it is told, or must assume, that others
have them already, `on_lost` is called instead. One task does all of it; callbacks run in it, and a rebalance waits for
them. How a group is joined and stayed in is `_take_part`, of group_member.py and consumer_member.py.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from types import TracebackType
from typing import ClassVar, Self, TypeVar

from broker_engine.client.client import Client
from broker_engine.client.connection import Connection
from broker_engine.client.coordinator import PASSING, Coordinator, CoordinatorKind
from broker_engine.client.errors import ClientClosed, KafkaError, error_for
from broker_engine.client.group_offsets import commit_offsets, fetch_offsets
from broker_engine.client.group_protocol import GroupIdentity
from broker_engine.client.model import TopicPartition
from broker_engine.client.tasks import TaskSet
from broker_engine.errors import ErrorCode
from broker_engine.wire.schema import Message

R = TypeVar("R", bound=Message)
OnPartitions = Callable[[tuple[TopicPartition, ...]], Awaitable[None]]

_NO_GENERATION = -1


async def ignore(partitions: tuple[TopicPartition, ...]) -> None:
    return None


class Membership:
    FENCED: ClassVar[frozenset[ErrorCode]] = frozenset()
    """The group went on without us: what we had is somebody else's."""
    EXPECTED: ClassVar[frozenset[ErrorCode]] = frozenset()
    """A part of the conversation: the next word is due at once."""

    def __init__(
        self,
        client: Client,
        group_id: str,
        topics: Iterable[str],
        *,
        rebalance_timeout_ms: int = 60_000,
        instance_id: str | None = None,
        on_assigned: OnPartitions = ignore,
        on_revoked: OnPartitions = ignore,
        on_lost: OnPartitions | None = None,
    ) -> None:
        self.group_id = group_id
        self._client = client
        self._topics = tuple(topics)
        self._rebalance_timeout_ms = rebalance_timeout_ms
        self._on_assigned = on_assigned
        self._on_revoked = on_revoked
        self._on_lost = on_lost if on_lost is not None else on_revoked
        self._coordinator = Coordinator(client, CoordinatorKind.GROUP, group_id)
        self._connection: Connection | None = None
        self._identity = GroupIdentity(group_id, _NO_GENERATION, "", instance_id)
        self._assignment: tuple[TopicPartition, ...] | None = None
        self._failure_count = 0
        self._error: KafkaError | None = None
        self._changed = asyncio.Event()
        self._tasks = TaskSet(f"member of {group_id}")
        self._is_started = self._is_closed = False

    async def __aenter__(self) -> Self:
        self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    # --- what callers see

    @property
    def identity(self) -> GroupIdentity:
        """Who we are in the present generation, or epoch; -1 before the first, and when we were fenced."""
        return self._identity

    @property
    def assignment(self) -> tuple[TopicPartition, ...]:
        """Empty also while we are not in the group."""
        return self._assignment or ()

    @property
    def is_assigned(self) -> bool:
        """In the group, with an assignment (which may be empty)."""
        return self._assignment is not None

    def start(self) -> None:
        """Begin to join. Errors that do not pass are raised by whatever is called next."""
        if not self._is_started:
            self._is_started = True
            self._tasks.spawn(self._run(), "member")

    async def wait_assigned(self) -> tuple[TopicPartition, ...]:
        """Until the group has settled with us in it."""
        while self._assignment is None:
            self._raise_error()
            self._changed.clear()
            await self._changed.wait()
        return self._assignment

    async def commit(self, offsets: Mapping[TopicPartition, int]) -> None:
        """The next offset to read, per partition. 22, 25, 27 or 113: the group went on without what we were."""
        self._raise_error()
        await commit_offsets(self._coordinator, self._identity, offsets)

    async def committed(self, targets: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """What the group has committed; partitions without an offset are left out. Waits for open transactions."""
        return await fetch_offsets(self._coordinator, self.group_id, targets)

    async def close(self, *, is_leaving: bool = True) -> None:
        """End. A dynamic member says goodbye, so that the others need not wait for its session to end."""
        if self._is_closed:
            return
        self._is_closed = True
        self._error = self._error or ClientClosed("the member is closed")
        await self._tasks.close()
        self._changed.set()
        if is_leaving and self._identity.member_id and self._identity.instance_id is None:
            await self._leave()
        if self._connection is not None:
            self._connection.close()
        self._assignment = None

    def _raise_error(self) -> None:
        if self._error is not None:
            raise self._error

    # --- the life of a member

    async def _run(self) -> None:
        while True:
            try:
                await self._take_part()
            except KafkaError as error:
                await self._on_error(error)
                self._failure_count += error.code not in self.EXPECTED
            if self._error is not None:
                return
            await asyncio.sleep(self._client.retry_backoff_ms(self._failure_count) / 1000)

    async def _take_part(self) -> None:
        """Join, or go on after an error that passes. Returns when the group is to be joined again."""
        raise NotImplementedError

    async def _leave(self) -> None:
        """Told once: if it does not arrive, the session's end does the same."""
        raise NotImplementedError

    async def _on_error(self, error: KafkaError) -> None:
        self._coordinator.on_error(error.code)
        is_passing = error.code in PASSING or error.code in self.EXPECTED
        if not is_passing:
            await self._give_back(self._on_lost)
        if error.code in self.FENCED:
            self._on_fenced(error.code)
        elif not is_passing:
            self._error = error
            self._changed.set()

    def _on_fenced(self, code: ErrorCode) -> None:
        self._become(_NO_GENERATION, "" if code == ErrorCode.UNKNOWN_MEMBER_ID else self._identity.member_id)

    def _become(self, generation: int, member_id: str) -> None:
        self._identity = GroupIdentity(self.group_id, generation, member_id, self._identity.instance_id)

    async def _give_back(self, callback: OnPartitions) -> None:
        """All of it."""
        partitions = self._assignment
        if partitions is not None:
            await self._let_go(callback, partitions, kept=None)

    async def _let_go(
        self, callback: OnPartitions, partitions: tuple[TopicPartition, ...], *, kept: tuple[TopicPartition, ...] | None
    ) -> None:
        """Whoever has the partitions has until the rebalance is over to let go of them."""
        try:
            async with asyncio.timeout(self._rebalance_timeout_ms / 1000):
                await callback(partitions)
        except TimeoutError:
            pass  # the group did not wait longer either: the next answer tells whether we are still in it
        finally:
            self._assignment = kept

    async def _ask(self, request: Message, answer: type[R], timeout_ms: int) -> R:
        """On a connection of our own: an answer may wait for other members, and others would wait behind it."""
        address = await self._coordinator.address()
        if self._connection is None or not self._connection.is_open or self._connection.address != address:
            if self._connection is not None:
                self._connection.close()
            self._connection = await self._client.links.open(address)
        return await self._connection.ask(request, answer, timeout_ms=timeout_ms)


def raise_for(code: int, context: str) -> None:
    if code != ErrorCode.NONE:
        raise error_for(code, None, context)
