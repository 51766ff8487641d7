"""A classic group, pure: who is in it, which generation they are in, who waits for whom.

Members join; when all that are known have come, or the rebalance time is over, a new generation begins and the leader
is told of everybody; the leader assigns, the group is stored, then everybody learns its part. Silence for a session
ends a membership. A static member (KIP-345) may come back under its name without a rebalance.

Times are of the monotonic clock. `step` functions answer effects in order; `next_deadline_ms` says when `on_time` is
due, and may say too early, never too late.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from broker_engine.errors import ErrorCode
from broker_engine.groups.effects import NO_GENERATION, Effect, JoinAnswer, Reply, Store, SyncAnswer
from broker_engine.groups.member import JoinAsk, Member, SyncAsk, Waiter, common_protocols, elect_protocol, new_member
from broker_engine.groups.records import GroupValue
from broker_engine.groups.states import NEXT_STATES, GroupState

NewMemberId = Callable[[JoinAsk], str]


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupSettings:
    initial_rebalance_delay_ms: int = 3_000
    size_max: int = (1 << 31) - 1


class ClassicGroup:
    def __init__(self, name: str, settings: GroupSettings, *, state_since_ms: int = 0) -> None:
        self.name = name
        self.state = GroupState.EMPTY
        self.state_since_ms = state_since_ms
        """Wall clock: it is stored, and offsets of an empty group expire by it."""
        self.generation = 0
        self.protocol_type = ""
        self.protocol: str | None = None
        self.leader: str | None = None
        self.members: dict[str, Member] = {}
        self._static: dict[str, str] = {}
        self._pending: dict[str, int] = {}
        """Ids that were given out and have not joined yet, and until when they may."""
        self._settings = settings
        self._rebalance_deadline_ms = 0
        self._sync_deadline_ms = 0
        self._initial_left_ms: int | None = None
        """How much longer a new group may wait for more members; None where it does not."""
        self._has_newcomer = False
        self._assigned: Mapping[str, bytes] | None = None
        """The leader's word, on its way to the log."""

    @property
    def is_nothing(self) -> bool:
        """Nobody ever joined, and nobody is about to: a refused request must not leave a group behind."""
        return self.generation == 0 and not self.members and not self._pending

    # --- join

    def join(self, ask: JoinAsk, waiter: Waiter, now_ms: int, new_id: NewMemberId) -> list[Effect]:
        code = self._check_join(ask)
        if code is not ErrorCode.NONE:
            return [_refused(waiter, code, ask.member_id)]
        if ask.member_id:
            return self._join_known(ask, waiter, now_ms)
        member_id = new_id(ask)
        if ask.instance_id is not None and ask.instance_id in self._static:
            return self._replace_static(self._static[ask.instance_id], member_id, ask, waiter, now_ms)
        if ask.instance_id is None and ask.needs_known_id:
            self._pending[member_id] = now_ms + ask.session_timeout_ms
            return [_refused(waiter, ErrorCode.MEMBER_ID_REQUIRED, member_id)]
        return self._add(member_id, ask, waiter, now_ms)

    def _check_join(self, ask: JoinAsk) -> ErrorCode:
        if self.state is GroupState.DEAD:
            return ErrorCode.COORDINATOR_NOT_AVAILABLE
        if not ask.protocol_type or not ask.protocols or not self._fits(ask):
            return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
        is_known = ask.member_id in self.members or ask.instance_id in self._static
        if not is_known and len(self.members) >= self._settings.size_max:
            return ErrorCode.GROUP_MAX_SIZE_REACHED
        return ErrorCode.NONE

    def _fits(self, ask: JoinAsk) -> bool:
        others = [member for member in self.members.values() if member.id != ask.member_id]
        if not others:
            return True
        names = [name for name, _ in ask.protocols]
        return ask.protocol_type == self.protocol_type and any(name in names for name in common_protocols(others))

    def _join_known(self, ask: JoinAsk, waiter: Waiter, now_ms: int) -> list[Effect]:
        code = self._check_identity(ask.member_id, ask.instance_id)
        if code is ErrorCode.UNKNOWN_MEMBER_ID and self._pending.pop(ask.member_id, None) is not None:
            return self._add(ask.member_id, ask, waiter, now_ms)
        if code is not ErrorCode.NONE:
            return [_refused(waiter, code, ask.member_id)]
        return self._rejoin(self.members[ask.member_id], ask, waiter, now_ms)

    def _check_identity(self, member_id: str, instance_id: str | None) -> ErrorCode:
        if instance_id is not None:
            owner = self._static.get(instance_id)
            if owner is not None and owner != member_id:
                return ErrorCode.FENCED_INSTANCE_ID
        return ErrorCode.NONE if member_id in self.members else ErrorCode.UNKNOWN_MEMBER_ID

    def _add(self, member_id: str, ask: JoinAsk, waiter: Waiter, now_ms: int) -> list[Effect]:
        if not self.members:
            self.protocol_type = ask.protocol_type
        self.members[member_id] = member = new_member(member_id, ask, now_ms)
        member.joining = waiter
        if ask.instance_id is not None:
            self._static[ask.instance_id] = member_id
        self.leader = self.leader or member_id
        self._has_newcomer = True
        return self._rebalance(now_ms)

    def _rejoin(self, member: Member, ask: JoinAsk, waiter: Waiter, now_ms: int) -> list[Effect]:
        member.seen_ms = now_ms
        is_same = member.protocols == ask.protocols
        is_retry = self.state is GroupState.COMPLETING_REBALANCE and is_same
        is_content = self.state is GroupState.STABLE and is_same and member.id != self.leader
        earlier, member.joining = member.joining, None
        effects: list[Effect] = [] if earlier is None else [_refused(earlier, ErrorCode.UNKNOWN_MEMBER_ID, member.id)]
        member.take_over(ask)
        if is_retry or is_content:
            return [*effects, Reply(waiter, self._joined(member))]
        member.joining = waiter
        return [*effects, *self._rebalance(now_ms)]

    def _replace_static(self, old_id: str, new_id: str, ask: JoinAsk, waiter: Waiter, now_ms: int) -> list[Effect]:
        """The same instance under a new id: the old one is fenced wherever it still speaks."""
        member = self.members.pop(old_id)
        effects = _fence(member)
        was_leader = self.leader == old_id
        member.id, member.seen_ms = new_id, now_ms
        self.members[new_id] = member
        assert member.instance_id is not None
        self._static[member.instance_id] = new_id
        if was_leader:
            self.leader = new_id
        member.take_over(ask)
        is_quiet = self.state is GroupState.STABLE and elect_protocol(list(self.members.values())) == self.protocol
        if not is_quiet:
            member.joining = waiter
            return [*effects, *self._rebalance(now_ms)]
        answer = self._welcomed_back(member, old_id, was_leader=was_leader, can_skip=ask.can_skip_assignment)
        return [*effects, Store(self.generation), Reply(waiter, answer)]

    def _welcomed_back(self, member: Member, old_id: str, *, was_leader: bool, can_skip: bool) -> JoinAnswer:
        """An old client that led would assign anew: told its own former id, it acts as a follower."""
        skips = was_leader and can_skip
        return JoinAnswer(
            member_id=member.id,
            generation=self.generation,
            protocol_type=self.protocol_type,
            protocol=self.protocol,
            leader=old_id if was_leader and not can_skip else self.leader or "",
            skip_assignment=skips,
            members=self._roll() if skips else (),
        )

    # --- rebalance

    def _rebalance(self, now_ms: int) -> list[Effect]:
        if self.state is GroupState.PREPARING_REBALANCE:
            return self._try_complete(now_ms)
        effects: list[Effect] = []
        for member in self.members.values():
            if member.syncing is not None:
                effects.append(Reply(member.syncing, SyncAnswer(ErrorCode.REBALANCE_IN_PROGRESS)))
                member.syncing, member.seen_ms = None, now_ms
        self._assigned = None
        self._set_deadline(now_ms)
        self._move_to(GroupState.PREPARING_REBALANCE)
        return [*effects, *self._try_complete(now_ms)]

    def _set_deadline(self, now_ms: int) -> None:
        wait_ms = self._rebalance_timeout_ms
        if self.state is GroupState.EMPTY:
            delay_ms = min(self._settings.initial_rebalance_delay_ms, wait_ms)
            self._initial_left_ms, self._has_newcomer = wait_ms - delay_ms, False
            wait_ms = delay_ms
        self._rebalance_deadline_ms = now_ms + wait_ms

    @property
    def _rebalance_timeout_ms(self) -> int:
        return max((member.rebalance_timeout_ms for member in self.members.values()), default=0)

    def _try_complete(self, now_ms: int) -> list[Effect]:
        is_waiting = self._pending or any(member.joining is None for member in self.members.values())
        if self._initial_left_ms is not None:
            is_waiting = True  # a new group waits a moment: most of its members come together
        return [] if is_waiting else self._complete(now_ms)

    def _complete(self, now_ms: int) -> list[Effect]:
        self._initial_left_ms = None
        for member in [each for each in self.members.values() if each.joining is None and not each.is_static]:
            self._drop(member)
        if self.members and not self._elect_leader():
            self._rebalance_deadline_ms = now_ms + self._rebalance_timeout_ms  # static members are still away
            return []
        self.generation += 1
        if not self.members:
            self.protocol = self.leader = None
            self._move_to(GroupState.EMPTY)
            return [Store(self.generation)]
        self.protocol = elect_protocol(list(self.members.values()))
        self._sync_deadline_ms = now_ms + self._rebalance_timeout_ms
        self._move_to(GroupState.COMPLETING_REBALANCE)
        return [reply for member in self.members.values() for reply in self._answer_join(member, now_ms)]

    def _elect_leader(self) -> bool:
        """The leader stays who it was if it is here."""
        here = [member.id for member in self.members.values() if member.joining is not None]
        if here and self.leader not in here:
            self.leader = here[0]
        return bool(here)

    def _answer_join(self, member: Member, now_ms: int) -> list[Effect]:
        waiter, member.joining = member.joining, None
        member.has_synced = False
        if waiter is None:
            return []
        member.seen_ms = now_ms
        return [Reply(waiter, self._joined(member))]

    def _joined(self, member: Member) -> JoinAnswer:
        return JoinAnswer(
            member_id=member.id,
            generation=self.generation,
            protocol_type=self.protocol_type,
            protocol=self.protocol,
            leader=self.leader or "",
            members=self._roll() if member.id == self.leader else (),
        )

    def _roll(self) -> tuple[tuple[str, str | None, bytes], ...]:
        protocol = self.protocol or ""
        return tuple((each.id, each.instance_id, each.metadata_of(protocol)) for each in self.members.values())

    # --- sync

    def sync(self, ask: SyncAsk, waiter: Waiter, now_ms: int) -> list[Effect]:
        code = self._check_sync(ask)
        if code is not ErrorCode.NONE:
            return [Reply(waiter, SyncAnswer(code))]
        member = self.members[ask.member_id]
        member.seen_ms, member.has_synced = now_ms, True
        if self.state is GroupState.STABLE:
            return [Reply(waiter, self._synced(member))]
        effects = _fence_sync(member, ErrorCode.UNKNOWN_MEMBER_ID)
        member.syncing = waiter
        if member.id == self.leader and self._assigned is None:
            self._assigned = dict(ask.assignments)
            effects.append(Store(self.generation))
        return effects

    def _check_sync(self, ask: SyncAsk) -> ErrorCode:
        code = self.check_member(ask.member_id, ask.instance_id, ask.generation)
        if code is not ErrorCode.NONE:
            return code
        if ask.protocol is not None and ask.protocol != (self.protocol_type, self.protocol):
            return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
        is_called = self.state is GroupState.PREPARING_REBALANCE
        return ErrorCode.REBALANCE_IN_PROGRESS if is_called else ErrorCode.NONE

    def on_stored(self, generation: int, code: ErrorCode, now_ms: int) -> list[Effect]:
        """The group is in the log, or will not be."""
        is_awaited = self.state is GroupState.COMPLETING_REBALANCE and generation == self.generation
        if not is_awaited or self._assigned is None:
            return []
        assigned, self._assigned = self._assigned, None
        if code is not ErrorCode.NONE:
            replies = [reply for member in self.members.values() for reply in _fence_sync(member, code)]
            return [*replies, *self._rebalance(now_ms)]
        self._move_to(GroupState.STABLE)
        effects: list[Effect] = []
        for member in self.members.values():
            member.assignment = assigned.get(member.id, b"")
            waiter, member.syncing = member.syncing, None
            if waiter is not None:
                member.seen_ms = now_ms
                effects.append(Reply(waiter, self._synced(member)))
        return effects

    def _synced(self, member: Member) -> SyncAnswer:
        return SyncAnswer(ErrorCode.NONE, self.protocol_type, self.protocol, member.assignment)

    # --- stay and go

    def check_member(self, member_id: str, instance_id: str | None, generation: int) -> ErrorCode:
        code = self._check_identity(member_id, instance_id)
        if code is ErrorCode.NONE and generation != self.generation:
            return ErrorCode.ILLEGAL_GENERATION
        return code

    def heartbeat(self, member_id: str, instance_id: str | None, generation: int, now_ms: int) -> ErrorCode:
        code = self.check_member(member_id, instance_id, generation)
        if code is not ErrorCode.NONE:
            return code
        self.members[member_id].seen_ms = now_ms
        is_called = self.state is GroupState.PREPARING_REBALANCE
        return ErrorCode.REBALANCE_IN_PROGRESS if is_called else ErrorCode.NONE

    def check_commit(self, member_id: str, instance_id: str | None, generation: int, now_ms: int) -> ErrorCode:
        """May these offsets be committed? A commit says that its member lives."""
        if generation < 0 and not member_id and instance_id is None:
            return ErrorCode.UNKNOWN_MEMBER_ID if self.members else ErrorCode.NONE
        code = self.check_member(member_id, instance_id, generation)
        if code is not ErrorCode.NONE:
            return code
        self.members[member_id].seen_ms = now_ms
        is_between = self.state is GroupState.COMPLETING_REBALANCE
        return ErrorCode.REBALANCE_IN_PROGRESS if is_between else ErrorCode.NONE

    def leave(self, member_id: str, instance_id: str | None, now_ms: int) -> tuple[ErrorCode, list[Effect]]:
        """A static member may be named by its instance alone."""
        if instance_id is not None and not member_id:
            member_id = self._static.get(instance_id, "")
        if self._pending.pop(member_id, None) is not None:
            return ErrorCode.NONE, self._after_departure(now_ms)
        code = self._check_identity(member_id, instance_id)
        if code is not ErrorCode.NONE:
            return code, []
        return ErrorCode.NONE, self._remove([self.members[member_id]], now_ms)

    def _remove(self, members: Iterable[Member], now_ms: int) -> list[Effect]:
        effects: list[Effect] = []
        for member in members:
            effects += self._drop(member)
        return [*effects, *self._after_departure(now_ms)]

    def _after_departure(self, now_ms: int) -> list[Effect]:
        if self.state in (GroupState.STABLE, GroupState.COMPLETING_REBALANCE):
            return self._rebalance(now_ms)
        return self._try_complete(now_ms) if self.state is GroupState.PREPARING_REBALANCE else []

    def _drop(self, member: Member) -> list[Effect]:
        del self.members[member.id]
        if member.instance_id is not None:
            self._static.pop(member.instance_id, None)
        if self.leader == member.id:
            self.leader = next(iter(self.members), None)
        replies: list[Effect] = []
        if member.joining is not None:
            replies.append(_refused(member.joining, ErrorCode.UNKNOWN_MEMBER_ID, member.id))
        return replies + _fence_sync(member, ErrorCode.UNKNOWN_MEMBER_ID)

    # --- time

    @property
    def next_deadline_ms(self) -> int | None:
        deadlines = list(self._pending.values())
        if self.state is GroupState.PREPARING_REBALANCE:
            deadlines.append(self._rebalance_deadline_ms)
        elif self.state is GroupState.COMPLETING_REBALANCE:
            deadlines.append(self._sync_deadline_ms)
        deadlines += [each.seen_ms + each.session_timeout_ms for each in self.members.values() if not each.is_waiting]
        return min(deadlines, default=None)

    def on_time(self, now_ms: int) -> list[Effect]:
        effects: list[Effect] = []
        overdue = [member_id for member_id, until_ms in self._pending.items() if until_ms <= now_ms]
        for member_id in overdue:
            del self._pending[member_id]
        silent = [member for member in self.members.values() if self._is_silent(member, now_ms)]
        if overdue or silent:
            effects += self._remove(silent, now_ms)
        if self.state is GroupState.PREPARING_REBALANCE and now_ms >= self._rebalance_deadline_ms:
            effects += self._on_rebalance_time(now_ms)
        return effects

    def _is_silent(self, member: Member, now_ms: int) -> bool:
        if self.state is GroupState.COMPLETING_REBALANCE and now_ms >= self._sync_deadline_ms and not member.has_synced:
            return True
        return not member.is_waiting and member.seen_ms + member.session_timeout_ms <= now_ms

    def _on_rebalance_time(self, now_ms: int) -> list[Effect]:
        left_ms = self._initial_left_ms
        if left_ms and self._has_newcomer:
            delay_ms = min(self._settings.initial_rebalance_delay_ms, left_ms)
            self._initial_left_ms, self._has_newcomer = left_ms - delay_ms, False
            self._rebalance_deadline_ms = now_ms + delay_ms
            return []
        self._initial_left_ms = None
        return self._complete(now_ms)

    # --- the log

    @property
    def assigned(self) -> Mapping[str, bytes] | None:
        """What the leader has just decided, where that is on its way to the log."""
        return self._assigned

    def restore(self, value: GroupValue, members: Iterable[Member]) -> None:
        """As the log says it was. Its members have a session from now on to show that they live."""
        self.generation, self.protocol_type = value.generation, value.protocol_type
        self.protocol, self.leader = value.protocol, value.leader
        self.state_since_ms = value.current_state_timestamp
        self.members = {member.id: member for member in members}
        self._static = {member.instance_id: member.id for member in self.members.values() if member.instance_id}
        self.state = GroupState.STABLE if self.members else GroupState.EMPTY

    def end(self, code: ErrorCode) -> list[Effect]:
        """This broker coordinates the group no more, or it was deleted: whoever waits looks elsewhere."""
        effects: list[Effect] = []
        for member in self.members.values():
            if member.joining is not None:
                effects.append(_refused(member.joining, code, member.id))
            effects += _fence_sync(member, code)
        self.state = GroupState.DEAD
        return effects

    def _move_to(self, state: GroupState) -> None:
        assert state in NEXT_STATES[self.state], f"{self.state.name} -> {state.name}"
        self.state = state


def _refused(waiter: Waiter, code: ErrorCode, member_id: str) -> Reply:
    return Reply(waiter, JoinAnswer(code, member_id=member_id, generation=NO_GENERATION))


def _fence(member: Member) -> list[Effect]:
    effects: list[Effect] = []
    if member.joining is not None:
        effects.append(_refused(member.joining, ErrorCode.FENCED_INSTANCE_ID, member.id))
        member.joining = None
    return effects + _fence_sync(member, ErrorCode.FENCED_INSTANCE_ID)


def _fence_sync(member: Member, code: ErrorCode) -> list[Effect]:
    waiter, member.syncing = member.syncing, None
    return [] if waiter is None else [Reply(waiter, SyncAnswer(code))]
