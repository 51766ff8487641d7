"""One member of a classic group, and what it asks for when it joins."""

from __future__ import annotations

from dataclasses import dataclass

Waiter = object
"""The shell's own handle of a request that waits for its answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinAsk:
    member_id: str
    instance_id: str | None
    client_id: str
    client_host: str
    session_timeout_ms: int
    rebalance_timeout_ms: int
    protocol_type: str
    protocols: tuple[tuple[str, bytes], ...]
    """(name, metadata) each, the best liked first. The metadata are the client's own bytes."""
    needs_known_id: bool = True
    """From version 4 on a new member first gets an id, so that a lost answer leaves no ghost behind."""
    can_skip_assignment: bool = False
    """From version 9 on a leader that came back may be told that nothing changed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SyncAsk:
    member_id: str
    instance_id: str | None
    generation: int
    protocol: tuple[str | None, str | None] | None = None
    """(type, name) as the client believes, where its version says so."""
    assignments: tuple[tuple[str, bytes], ...] = ()
    """Of each member, from the leader only."""


@dataclass(slots=True, kw_only=True)
class Member:
    id: str
    instance_id: str | None
    client_id: str
    client_host: str
    session_timeout_ms: int
    rebalance_timeout_ms: int
    protocols: tuple[tuple[str, bytes], ...]
    assignment: bytes = b""
    seen_ms: int = 0
    joining: Waiter | None = None
    """Its JoinGroup waits for the others."""
    syncing: Waiter | None = None
    """Its SyncGroup waits for the leader."""
    has_synced: bool = False

    @property
    def is_static(self) -> bool:
        return self.instance_id is not None

    @property
    def is_waiting(self) -> bool:
        return self.joining is not None or self.syncing is not None

    @property
    def protocol_names(self) -> tuple[str, ...]:
        return tuple(name for name, _ in self.protocols)

    def metadata_of(self, protocol: str) -> bytes:
        return next((metadata for name, metadata in self.protocols if name == protocol), b"")

    def take_over(self, ask: JoinAsk) -> None:
        self.protocols = ask.protocols
        self.session_timeout_ms = ask.session_timeout_ms
        self.rebalance_timeout_ms = ask.rebalance_timeout_ms
        self.client_id, self.client_host = ask.client_id, ask.client_host


def new_member(member_id: str, ask: JoinAsk, now_ms: int) -> Member:
    return Member(
        id=member_id,
        instance_id=ask.instance_id,
        client_id=ask.client_id,
        client_host=ask.client_host,
        session_timeout_ms=ask.session_timeout_ms,
        rebalance_timeout_ms=ask.rebalance_timeout_ms,
        protocols=ask.protocols,
        seen_ms=now_ms,
    )
