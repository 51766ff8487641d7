"""What a classic group answers, and what it asks the shell to do."""

from __future__ import annotations

from dataclasses import dataclass

from broker_engine.errors import ErrorCode
from broker_engine.groups.member import Member, Waiter

NO_GENERATION = -1


@dataclass(frozen=True, slots=True)
class JoinAnswer:
    code: ErrorCode = ErrorCode.NONE
    member_id: str = ""
    generation: int = NO_GENERATION
    protocol_type: str | None = None
    protocol: str | None = None
    leader: str = ""
    skip_assignment: bool = False
    members: tuple[tuple[str, str | None, bytes], ...] = ()
    """(member id, instance id, metadata) each; only the leader is told."""


@dataclass(frozen=True, slots=True)
class SyncAnswer:
    code: ErrorCode = ErrorCode.NONE
    protocol_type: str | None = None
    protocol: str | None = None
    assignment: bytes = b""


@dataclass(frozen=True, slots=True)
class Reply:
    waiter: Waiter
    answer: JoinAnswer | SyncAnswer


@dataclass(frozen=True, slots=True)
class Return:
    """A static member is in the group under a new id, and learns of it when a successor would know it too."""

    member: Member
    before: Member
    """As it was, and is again where this cannot be stored."""
    waiter: Waiter
    was_leader: bool
    can_skip_assignment: bool


@dataclass(frozen=True, slots=True)
class Store:
    """Write the group as it is (`stored.group_value`), then report it (`joining.on_stored`)."""

    generation: int
    back: Return | None = None
    """Whose return it is that is written, if it is one."""


Effect = Reply | Store


def refuse_join(waiter: Waiter, code: ErrorCode, member_id: str) -> Reply:
    return Reply(waiter, JoinAnswer(code, member_id=member_id, generation=NO_GENERATION))


def release(member: Member, code: ErrorCode) -> list[Effect]:
    """Whatever this member waits for, it waits no more."""
    effects: list[Effect] = []
    if member.joining is not None:
        effects.append(refuse_join(member.joining, code, member.id))
    if member.syncing is not None:
        effects.append(Reply(member.syncing, SyncAnswer(code)))
    member.joining = member.syncing = None
    return effects
