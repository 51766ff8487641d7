"""Fetch sessions (KIP-227): the broker remembers what a reader fetches; requests and answers carry only changes.

Pure: no sockets, no clock of its own. Bounded in sessions, in sessions per principal and in partitions; where there is
no room a reader gets session 0, which means full fetches. A session belongs to the principal that opened it: to
everybody else it does not exist.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from uuid import UUID

from broker_engine.clock import Randomness
from broker_engine.errors import BrokerError, ErrorCode
from broker_engine.metadata.image import MetadataImage
from broker_engine.security.principal import Principal
from broker_engine.server.local_partition import LocalPartition
from broker_engine.wire.messages.fetch import FetchPartition

NO_SESSION = 0
FINAL_EPOCH, FIRST_EPOCH = -1, 0
EVICTION_MS = 120_000
"""Kafka's: whoever was here within this time keeps its session."""
PRINCIPAL_PART = 4
"""One principal holds at most one slot in so many."""
PARTITIONS_MAX = 200_000
"""Over all sessions."""
NAME_LENGTH_MAX = 320
"""Longer than any topic's name: what cannot exist is not remembered."""
_EPOCH_MAX = 2**31 - 1
_NOT_SENT = -2

TargetKey = tuple[str, UUID, int]


@dataclass(slots=True)
class Target:
    """One partition that somebody fetches, looked up, and what they were last told of it."""

    topic: str
    topic_id: UUID
    asked: FetchPartition
    partition: LocalPartition | None = None
    error: BrokerError | None = None
    high_watermark: int = _NOT_SENT
    log_start_offset: int = _NOT_SENT

    @property
    def key(self) -> TargetKey:
        return self.topic, self.topic_id, self.asked.partition

    def note_sent(self, error_code: int, high_watermark: int, log_start_offset: int) -> None:
        """After an error the reader is told of everything again."""
        self.high_watermark = _NOT_SENT if error_code else high_watermark
        self.log_start_offset = log_start_offset


class FetchSession:
    def __init__(
        self, session_id: int, owner: Principal, targets: Iterable[Target], *, uses_topic_ids: bool, now_ms: int
    ) -> None:
        self.id = session_id
        self.owner = owner
        self.targets = {target.key: target for target in targets}
        self.uses_topic_ids = uses_topic_ids
        self.next_epoch = FIRST_EPOCH + 1
        self.last_used_ms = now_ms
        self.image: MetadataImage | None = None
        """The image in which the targets were looked up."""

    def move_to_end(self, target: Target) -> None:
        """Whoever got records comes last in the next answer, so that others have their turn."""
        if self.targets.pop(target.key, None) is not None:
            self.targets[target.key] = target

    def begin(self, epoch: int, *, uses_topic_ids: bool) -> None:
        """The next request. BrokerError where it does not follow on the last one."""
        if uses_topic_ids != self.uses_topic_ids:
            raise BrokerError(ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR)
        if epoch != self.next_epoch:
            raise BrokerError(ErrorCode.INVALID_FETCH_SESSION_EPOCH)
        self.next_epoch = epoch + 1 if epoch < _EPOCH_MAX else FIRST_EPOCH + 1


class FetchSessions:
    def __init__(self, slot_count: int, randomness: Randomness) -> None:
        self._slot_count = slot_count
        self._slot_count_per_owner = max(1, slot_count // PRINCIPAL_PART)
        self._randomness = randomness
        self._by_id: dict[int, FetchSession] = {}  # least recently used first, here and below
        self._by_owner: dict[Principal, dict[int, FetchSession]] = {}
        self.partition_count = 0

    def __len__(self) -> int:
        return len(self._by_id)

    def open(
        self, owner: Principal, targets: list[Target], *, uses_topic_ids: bool, now_ms: int
    ) -> FetchSession | None:
        """None where there is no room: then every request is a full one."""
        is_rememberable = all(len(target.topic) <= NAME_LENGTH_MAX for target in targets)
        if not is_rememberable or not self._make_room(owner, len(targets), now_ms):
            return None
        session = FetchSession(self._new_id(), owner, targets, uses_topic_ids=uses_topic_ids, now_ms=now_ms)
        self._by_id[session.id] = session
        self._by_owner.setdefault(owner, {})[session.id] = session
        self.partition_count += len(session.targets)
        return session

    def find(self, session_id: int, owner: Principal, now_ms: int) -> FetchSession:
        session = self._by_id.get(session_id)
        if session is None or session.owner != owner:
            raise BrokerError(ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
        session.last_used_ms = now_ms
        for sessions in (self._by_id, self._by_owner[owner]):
            sessions[session_id] = sessions.pop(session_id)
        return session

    def close(self, session_id: int, owner: Principal) -> None:
        session = self._by_id.get(session_id)
        if session is not None and session.owner == owner:
            self._remove(session)

    def add(self, session: FetchSession, target: Target) -> None:
        """Where there is no room the session ends: its reader fetches in full."""
        assert target.key not in session.targets
        if self.partition_count >= PARTITIONS_MAX or len(target.topic) > NAME_LENGTH_MAX:
            self.close(session.id, session.owner)
            raise BrokerError(ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
        session.targets[target.key] = target
        self.partition_count += 1

    def forget(self, session: FetchSession, key: TargetKey) -> None:
        if session.targets.pop(key, None) is not None:
            self.partition_count -= 1

    def _make_room(self, owner: Principal, partition_count: int, now_ms: int) -> bool:
        own = self._by_owner.get(owner, {})
        if len(own) >= self._slot_count_per_owner and not self._evict_oldest(own, now_ms):
            return False
        if len(self._by_id) >= self._slot_count and not self._evict_oldest(self._by_id, now_ms):
            return False
        return self.partition_count + partition_count <= PARTITIONS_MAX

    def _evict_oldest(self, sessions: dict[int, FetchSession], now_ms: int) -> bool:
        oldest = next(iter(sessions.values()), None)
        if oldest is None or now_ms - oldest.last_used_ms < EVICTION_MS:
            return False
        self._remove(oldest)
        return True

    def _remove(self, session: FetchSession) -> None:
        del self._by_id[session.id]
        own = self._by_owner[session.owner]
        del own[session.id]
        if not own:
            del self._by_owner[session.owner]
        self.partition_count -= len(session.targets)

    def _new_id(self) -> int:
        """Not to be guessed, not in use, and positive."""
        while True:
            session_id = int.from_bytes(self._randomness.token_bytes(4), "big") & _EPOCH_MAX
            if session_id != NO_SESSION and session_id not in self._by_id:
                return session_id
