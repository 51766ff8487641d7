"""Followers' fetch sessions, as their leader keeps them: who follows which partition from where, and what is news.

A session costs what changes in it: a partition marks itself when it has something to tell, and only marked ones are
looked at. One follower has one session per lane; they are never evicted, and go with the connection, with the
follower's next life, or when another session takes their place.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from uuid import UUID

from broker_engine.clock import Randomness
from broker_engine.errors import BrokerError, ErrorCode
from broker_engine.server.local_partition import LocalPartition
from broker_engine.wire.messages.fetch import EpochEndOffset, FetchPartition

FINAL_EPOCH, FIRST_EPOCH = -1, 0
SESSIONS_PER_BROKER_MAX = 32
_EPOCH_MAX = 2**31 - 1
_NOT_TOLD = -2

TargetKey = tuple[UUID, int]


class ReplicaTarget:
    """One partition that a follower fetches."""

    __slots__ = (
        "asked", "diverging", "failure", "has_sent", "key", "local", "session", "told_high_watermark", "told_log_start"
    )  # fmt: skip

    def __init__(self, session: ReplicaSession, key: TargetKey, asked: FetchPartition) -> None:
        self.session = session
        self.key = key
        self.asked = asked
        self.local: LocalPartition | None = None
        self.failure: BrokerError | None = None
        """To be told with the next answer."""
        self.diverging: EpochEndOffset | None = None
        self.has_sent = False
        """Records are on their way: no more before the follower says how far it is."""
        self.told_high_watermark = self.told_log_start = _NOT_TOLD

    def on_news(self, *, is_urgent: bool) -> None:
        self.session.mark(self, is_urgent=is_urgent)

    def watch(self, local: LocalPartition | None) -> None:
        if local is self.local:
            return
        if self.local is not None:
            self.local.replica_watches.pop(self, None)
        self.local = local
        if local is not None:
            local.replica_watches[self] = None


class ReplicaSession:
    def __init__(self, session_id: int, broker_id: int, broker_epoch: int) -> None:
        self.id = session_id
        self.broker_id = broker_id
        self.broker_epoch = broker_epoch
        self.targets: dict[TargetKey, ReplicaTarget] = {}
        self.marked: dict[ReplicaTarget, None] = {}
        """Those with something to tell, whoever waits longest first."""
        self.next_epoch = FIRST_EPOCH + 1
        self.is_closed = False
        self.has_urgent_news = False
        """Since the last look: whoever is about to wait has not seen it."""
        self._waiter: asyncio.Future[None] | None = None

    def mark(self, target: ReplicaTarget, *, is_urgent: bool) -> None:
        self.marked[target] = None
        if is_urgent:
            self.has_urgent_news = True
            self.wake()

    def wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def begin(self, epoch: int) -> None:
        """The next request, which ends the wait of the one before. BrokerError where it does not follow on that."""
        if epoch != self.next_epoch:
            raise BrokerError(ErrorCode.INVALID_FETCH_SESSION_EPOCH)
        self.next_epoch = epoch + 1 if epoch < _EPOCH_MAX else FIRST_EPOCH + 1
        self.wake()

    async def wait(self, wait_s: float) -> None:
        """Until there is something urgent to tell, another request, or the time is up."""
        if self.has_urgent_news:
            return
        loop = asyncio.get_running_loop()
        waiter = self._waiter = loop.create_future()
        timer = loop.call_later(max(0.0, wait_s), _finish, waiter)
        try:
            await waiter
        finally:
            timer.cancel()
            if self._waiter is waiter:
                self._waiter = None

    def target(self, key: TargetKey, asked: FetchPartition) -> ReplicaTarget:
        """The partition as the follower asks for it now."""
        target = self.targets.get(key)
        if target is None:
            target = self.targets[key] = ReplicaTarget(self, key, asked)
        target.asked, target.has_sent = asked, False
        target.failure = target.diverging = None
        self.marked[target] = None
        return target

    def forget(self, key: TargetKey) -> None:
        target = self.targets.pop(key, None)
        if target is not None:
            target.watch(None)
            self.marked.pop(target, None)

    def close(self) -> None:
        self.is_closed = True
        for key in list(self.targets):
            self.forget(key)
        self.wake()


class ReplicaSessions:
    def __init__(self, randomness: Randomness) -> None:
        self._randomness = randomness
        self._by_id: dict[int, ReplicaSession] = {}

    def __len__(self) -> int:
        return len(self._by_id)

    def open(self, broker_id: int, broker_epoch: int) -> ReplicaSession:
        """Sessions of the broker's earlier lives end with this."""
        own = [session for session in self._by_id.values() if session.broker_id == broker_id]
        self._close_all(session for session in own if session.broker_epoch != broker_epoch)
        self._close_all(own[: max(0, len(own) + 1 - SESSIONS_PER_BROKER_MAX)])
        session = ReplicaSession(self._new_id(), broker_id, broker_epoch)
        self._by_id[session.id] = session
        return session

    def find(self, session_id: int, broker_id: int, broker_epoch: int) -> ReplicaSession:
        session = self._by_id.get(session_id)
        if session is None or session.broker_id != broker_id or session.broker_epoch != broker_epoch:
            raise BrokerError(ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
        return session

    def close(self, session_id: int, broker_id: int) -> None:
        session = self._by_id.get(session_id)
        if session is not None and session.broker_id == broker_id:
            self._close_all([session])

    def _close_all(self, sessions: Iterable[ReplicaSession]) -> None:
        for session in sessions:
            if self._by_id.pop(session.id, None) is not None:
                session.close()

    def _new_id(self) -> int:
        while True:
            session_id = int.from_bytes(self._randomness.token_bytes(4), "big") & _EPOCH_MAX
            if session_id != 0 and session_id not in self._by_id:
                return session_id


def _finish(waiter: asyncio.Future[None]) -> None:
    if not waiter.done():
        waiter.set_result(None)
