"""Who may commit or read offsets of a group of the consumer protocol, by the member's epoch."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from uuid import UUID

from broker_engine.errors import BrokerError, ErrorCode
from broker_engine.groups.consumer.group import ConsumerGroup
from broker_engine.groups.consumer.member import Standing


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitAsk:
    member_id: str
    instance_id: str | None
    epoch: int
    """Or the generation, of a classic member. Negative: whoever commits is no member."""
    places: Iterable[tuple[UUID, int]] | None = None
    """What is committed; None: it cannot be told, so that only the present epoch counts."""
    knows_epochs: bool = True
    """From version 9 on a client may be a member of the consumer protocol."""
    is_transactional: bool = False

    @property
    def is_simple(self) -> bool:
        return self.epoch < 0 and not self.member_id and self.instance_id is None


def check_commit(group: ConsumerGroup, ask: CommitAsk, now_ms: int) -> ErrorCode:
    if ask.is_simple and (ask.is_transactional or not group.members):
        return ErrorCode.NONE
    try:
        member = group.identified(ask.member_id, ask.instance_id) if ask.instance_id else group.member(ask.member_id)
    except BrokerError as error:
        return error.code
    if member.is_classic:
        code = ErrorCode.NONE if ask.epoch == member.epoch else ErrorCode.ILLEGAL_GENERATION
    elif not ask.knows_epochs and not ask.is_transactional:
        code = ErrorCode.UNSUPPORTED_VERSION
    else:
        is_held = ask.epoch == member.epoch or _has_held(member.standing, ask)
        code = ErrorCode.NONE if is_held else ErrorCode.STALE_MEMBER_EPOCH
    if code is ErrorCode.NONE:
        member.seen_ms = now_ms
    return code


def _has_held(standing: Standing, ask: CommitAsk) -> bool:
    """An older epoch counts for partitions that have been the member's ever since."""
    if ask.places is None or ask.epoch >= standing.epoch:
        return False
    return all(_is_since(standing, place, ask.epoch) for place in ask.places)


def _is_since(standing: Standing, place: tuple[UUID, int], epoch: int) -> bool:
    topic_id, index = place
    parts = (standing.assigned.get(topic_id, {}), standing.revoking.get(topic_id, {}))
    return any(index in part and part[index] <= epoch for part in parts)


def check_fetch(group: ConsumerGroup, member_id: str | None, epoch: int) -> ErrorCode:
    """Whoever says that it is a member has to be one, in the present epoch; others may read anyway."""
    if not member_id and epoch < 0:
        return ErrorCode.NONE
    member = group.members.get(member_id or "")
    if member is None:
        return ErrorCode.UNKNOWN_MEMBER_ID
    if member.epoch == epoch:
        return ErrorCode.NONE
    return ErrorCode.ILLEGAL_GENERATION if member.is_classic else ErrorCode.STALE_MEMBER_EPOCH
