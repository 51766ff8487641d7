"""Liveness: which brokers the controller hears from. Soft state: a new controller begins with a full session for all,
for else a fail-over of the controller would fence everybody.
"""

from __future__ import annotations

from dataclasses import dataclass

from broker_engine.metadata.image import MetadataImage


@dataclass(slots=True)
class _Session:
    broker_epoch: int
    heard_ms: int
    metadata_offset: int
    """The last offset that this broker has replayed, by its own word; -1 = not heard yet."""


class Liveness:
    def __init__(self, session_timeout_ms: int) -> None:
        self._session_timeout_ms = session_timeout_ms
        self._sessions: dict[int, _Session] = {}
        self._stopping: dict[tuple[int, int], tuple[int, int]] = {}
        self._returning: dict[int, tuple[int, int]] = {}
        """By fenced broker that asks to serve: its epoch, and where the metadata ended when it first did."""

    def on_leadership(self, image: MetadataImage, now_ms: int) -> None:
        """Everybody who counts as alive has a whole session to say so."""
        self._stopping.clear()
        self._returning.clear()
        self._sessions = {
            broker.id: _Session(broker.epoch, now_ms, -1) for broker in image.brokers.values() if not broker.is_fenced
        }

    def touch(self, broker_id: int, broker_epoch: int, now_ms: int, *, metadata_offset: int = -1) -> None:
        self._sessions[broker_id] = _Session(broker_epoch, now_ms, metadata_offset)

    def forget(self, broker_id: int, broker_epoch: int) -> None:
        """It was fenced. A later life of the same broker is not meant."""
        self._stopping.pop((broker_id, broker_epoch), None)
        session = self._sessions.get(broker_id)
        if session is not None and session.broker_epoch == broker_epoch:
            del self._sessions[broker_id]

    def is_alive(self, broker_id: int, now_ms: int) -> bool:
        session = self._sessions.get(broker_id)
        return session is not None and now_ms < self._end_ms(session)

    def expired(self, now_ms: int) -> list[tuple[int, int]]:
        """(broker, broker epoch) of everybody whose session is over, until it is forgotten."""
        return [
            (broker_id, session.broker_epoch)
            for broker_id, session in sorted(self._sessions.items())
            if now_ms >= self._end_ms(session)
        ]

    def next_expiry_ms(self) -> int | None:
        """When there may be something to do; None while nobody has a session."""
        return min(map(self._end_ms, self._sessions.values()), default=None)

    def stop_began(self, broker_id: int, broker_epoch: int, offset: int, now_ms: int) -> tuple[int, int]:
        """(offset, time) when this broker's leaders had moved away: what was told first counts."""
        return self._stopping.setdefault((broker_id, broker_epoch), (offset, now_ms))

    def has_caught_up(self, broker_id: int, broker_epoch: int, seen_offset: int, end_offset: int) -> bool:
        """Whether a fenced broker that asks to serve has seen all that was decided until it first did: who leads in its
        place is part of that. Without it, it would go on as if it had not been fenced.
        """
        if broker_id not in self._returning or self._returning[broker_id][0] != broker_epoch:
            self._returning[broker_id] = (broker_epoch, end_offset)
        return seen_offset >= self._returning[broker_id][1]

    def note_unfenced(self, broker_id: int) -> None:
        self._returning.pop(broker_id, None)

    def has_everybody_reached(self, image: MetadataImage, offset: int, *, but: int) -> bool:
        """Whether all live brokers other than `but` have replayed the record at `offset`."""
        return all(
            broker.id in self._sessions and self._sessions[broker.id].metadata_offset >= offset
            for broker in image.brokers.values()
            if not broker.is_fenced and broker.id != but
        )

    def _end_ms(self, session: _Session) -> int:
        return session.heard_ms + self._session_timeout_ms
