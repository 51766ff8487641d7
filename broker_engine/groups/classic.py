"""A classic group, pure: which generation its members are in, who waits for whom.

Members join; when all that are known have come, or the rebalance time is over, a new generation begins and the leader
is told of everybody; the leader assigns, the group is stored, then everybody learns its part. Silence for a session
ends a membership. Who is let in, and as whom, is decided in joining.py; who is a member is kept in roster.py.

Times are of the monotonic clock. What happens to a group answers effects, in order; `next_deadline_ms` says when
`on_time` is due, and may say too early, never too late.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from broker_engine.errors import ErrorCode
from broker_engine.groups.consumer_protocol import PROTOCOL_TYPE
from broker_engine.groups.effects import Effect, JoinAnswer, Reply, Store, SyncAnswer, release
from broker_engine.groups.member import Member, SyncAsk, Waiter
from broker_engine.groups.rebalance_wait import RebalanceWait
from broker_engine.groups.roster import Roster
from broker_engine.groups.settings import GroupSettings
from broker_engine.groups.states import NEXT_STATES, GroupState
from broker_engine.groups.timeline import EventKind, Timeline
from broker_engine.groups.topic_news import NO_NEWS, TopicNews

_AWAY_WAIT_MS_MIN = 1_000
_IN_A_GENERATION = (GroupState.COMPLETING_REBALANCE, GroupState.STABLE)


class ClassicGroup:
    def __init__(self, name: str, settings: GroupSettings, *, state_since_ms: int = 0) -> None:
        self.name = name
        self.state = GroupState.EMPTY
        self.state_since_ms = state_since_ms
        """Wall clock: it is stored, and offsets of an empty group expire by it."""
        self.generation = 0
        self.protocol: str | None = None
        self.timeline = Timeline()
        self.roster = Roster()
        self.size_max = settings.size_max
        self._wait = RebalanceWait(settings.initial_rebalance_delay_ms)
        self._sync_deadline_ms = 0
        self.assigned: Mapping[str, bytes] | None = None
        """The leader's word, on its way to the log."""

    @property
    def members(self) -> Mapping[str, Member]:
        return self.roster.members

    @property
    def leader(self) -> str | None:
        return self.roster.leader

    @property
    def protocol_type(self) -> str:
        return self.roster.protocol_type

    @property
    def is_nothing(self) -> bool:
        """Nobody ever joined, and nobody is about to: a refused request must not leave a group behind."""
        return self.generation == 0 and not self.members and not self.roster.pending

    # --- rebalance

    def admit(self, member: Member, protocol_type: str, now_ms: int) -> list[Effect]:
        """A newcomer, whose join waits for the others."""
        self._begin_rebalance(now_ms)
        self.roster.add(member, protocol_type)
        self.note(EventKind.JOINED, member, now_ms)
        self._wait.newcomer()
        return self.rebalance(now_ms)

    def _begin_rebalance(self, now_ms: int) -> None:
        if not self.timeline.is_rebalancing:
            self.timeline.begin(now_ms, self.roster.owners())

    def rebalance(self, now_ms: int) -> list[Effect]:
        """Everybody is to join again."""
        if self.state is GroupState.PREPARING_REBALANCE:
            return self._try_complete(now_ms)
        self._begin_rebalance(now_ms)
        effects: list[Effect] = []
        for member in self.members.values():
            if member.syncing is not None:
                effects.append(Reply(member.syncing, SyncAnswer(ErrorCode.REBALANCE_IN_PROGRESS)))
                member.syncing, member.seen_ms = None, now_ms
        self.assigned = None
        self._wait.begin(self.roster.rebalance_timeout_ms, now_ms, is_new_group=self.state is GroupState.EMPTY)
        self._move_to(GroupState.PREPARING_REBALANCE)
        return [*effects, *self._try_complete(now_ms)]

    def _try_complete(self, now_ms: int) -> list[Effect]:
        return [] if self._wait.is_initial or self.roster.is_awaited else self._complete(now_ms)

    def _complete(self, now_ms: int) -> list[Effect]:
        self._wait.end()
        for member in [each for each in self.members.values() if each.joining is None and not each.is_static]:
            self.note(EventKind.TIMED_OUT, member, now_ms)
            self.roster.drop(member)
        if self.members and not self.roster.elect_leader():
            # Static ones are away, and may have given no time at all to wait for them.
            self._wait.begin(max(self.roster.rebalance_timeout_ms, _AWAY_WAIT_MS_MIN), now_ms, is_new_group=False)
            return []
        self.generation += 1
        return self._begin_generation(now_ms) if self.members else self._become_empty(now_ms)

    def _become_empty(self, now_ms: int) -> list[Effect]:
        self.protocol = self.roster.leader = None
        self._move_to(GroupState.EMPTY)
        self.timeline.settle(now_ms, self.generation, {})
        return [Store(self.generation)]

    def _begin_generation(self, now_ms: int) -> list[Effect]:
        self.protocol = self.roster.elect_protocol()
        self._sync_deadline_ms = now_ms + self.roster.rebalance_timeout_ms
        self._move_to(GroupState.COMPLETING_REBALANCE)
        return [reply for member in self.members.values() for reply in self._answer_join(member, now_ms)]

    def _answer_join(self, member: Member, now_ms: int) -> list[Effect]:
        waiter, member.joining = member.joining, None
        member.has_synced = False
        if waiter is None:
            return []
        member.seen_ms = now_ms
        return [Reply(waiter, self.joined(member))]

    def joined(self, member: Member) -> JoinAnswer:
        """What a member of the present generation is told."""
        return JoinAnswer(
            member_id=member.id,
            generation=self.generation,
            protocol_type=self.protocol_type,
            protocol=self.protocol,
            leader=self.leader or "",
            members=self.roster.roll(self.protocol) if member.id == self.leader else (),
        )

    # --- sync

    def sync(self, ask: SyncAsk, waiter: Waiter, now_ms: int) -> list[Effect]:
        code = self._check_sync(ask)
        if code is not ErrorCode.NONE:
            return [Reply(waiter, SyncAnswer(code))]
        member = self.members[ask.member_id]
        member.seen_ms, member.has_synced = now_ms, True
        if self.state is GroupState.STABLE:
            return [Reply(waiter, self._synced(member))]
        effects = release(member, ErrorCode.UNKNOWN_MEMBER_ID)
        member.syncing = waiter
        if member.id == self.leader and self.assigned is None:
            self.assigned = dict(ask.assignments)
            effects.append(Store(self.generation))
        return effects

    def _check_sync(self, ask: SyncAsk) -> ErrorCode:
        code = self.check_member(ask.member_id, ask.instance_id, ask.generation)
        if code is not ErrorCode.NONE:
            return code
        if ask.protocol is not None and ask.protocol != (self.protocol_type, self.protocol):
            return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
        return self._called()

    def on_stored(self, generation: int, code: ErrorCode, now_ms: int) -> list[Effect]:
        """The group is in the log, or will not be."""
        is_awaited = self.state is GroupState.COMPLETING_REBALANCE and generation == self.generation
        if not is_awaited or self.assigned is None:
            return []
        assigned, self.assigned = self.assigned, None
        if code is not ErrorCode.NONE:
            replies = [reply for member in self.members.values() for reply in release(member, code)]
            return [*replies, *self.rebalance(now_ms)]
        self._move_to(GroupState.STABLE)
        for member in self.members.values():
            member.assignment = assigned.get(member.id, b"")
        self.timeline.settle(now_ms, self.generation, self.roster.owners())
        return [reply for member in self.members.values() for reply in self._answer_sync(member, now_ms)]

    def _answer_sync(self, member: Member, now_ms: int) -> list[Effect]:
        waiter, member.syncing = member.syncing, None
        if waiter is None:
            return []
        member.seen_ms = now_ms
        return [Reply(waiter, self._synced(member))]

    def _synced(self, member: Member) -> SyncAnswer:
        return SyncAnswer(ErrorCode.NONE, self.protocol_type, self.protocol, member.assignment)

    # --- stay and go

    def check_member(self, member_id: str, instance_id: str | None, generation: int) -> ErrorCode:
        code = self.roster.check(member_id, instance_id)
        if code is ErrorCode.NONE and generation != self.generation:
            return ErrorCode.ILLEGAL_GENERATION
        return code

    def heartbeat(self, member_id: str, instance_id: str | None, generation: int, now_ms: int) -> ErrorCode:
        code = self.check_member(member_id, instance_id, generation)
        if code is not ErrorCode.NONE:
            return code
        self.members[member_id].seen_ms = now_ms
        return self._called()

    def _called(self) -> ErrorCode:
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
            member_id = self.roster.id_of(instance_id) or ""
        if self.roster.pending.pop(member_id, None) is not None:
            return ErrorCode.NONE, self._after_departure(now_ms)
        code = self.roster.check(member_id, instance_id)
        if code is not ErrorCode.NONE:
            return code, []
        return ErrorCode.NONE, self._remove([self.members[member_id]], EventKind.LEFT, now_ms)

    def _remove(self, members: Iterable[Member], kind: EventKind, now_ms: int) -> list[Effect]:
        self._begin_rebalance(now_ms)
        effects: list[Effect] = []
        for member in members:
            self.note(kind, member, now_ms)
            self.roster.drop(member)
            effects += release(member, ErrorCode.UNKNOWN_MEMBER_ID)
        return [*effects, *self._after_departure(now_ms)]

    def _after_departure(self, now_ms: int) -> list[Effect]:
        if self.state in _IN_A_GENERATION:
            return self.rebalance(now_ms)
        return self._try_complete(now_ms) if self.state is GroupState.PREPARING_REBALANCE else []

    # --- time

    @property
    def next_deadline_ms(self) -> int | None:
        deadlines = list(self.roster.pending.values())
        if self.state is GroupState.PREPARING_REBALANCE:
            deadlines.append(self._wait.deadline_ms)
        elif self.state in _IN_A_GENERATION:
            # Where all have synced they wait for the log, which has no deadline here.
            deadlines += [self._sync_deadline_ms for each in self.members.values() if not each.has_synced]
        deadlines += [each.seen_ms + each.session_timeout_ms for each in self.members.values() if not each.is_waiting]
        return min(deadlines, default=None)

    def on_time(self, now_ms: int) -> list[Effect]:
        effects: list[Effect] = []
        overdue = [member_id for member_id, until_ms in self.roster.pending.items() if until_ms <= now_ms]
        for member_id in overdue:
            del self.roster.pending[member_id]
        silent = [member for member in self.members.values() if self._is_silent(member, now_ms)]
        if silent:
            effects += self._remove(silent, EventKind.TIMED_OUT, now_ms)
        elif overdue:
            effects += self._after_departure(now_ms)
        if self.state is GroupState.PREPARING_REBALANCE and self._wait.is_over(now_ms):
            effects += self._complete(now_ms)
        return effects

    def _is_silent(self, member: Member, now_ms: int) -> bool:
        if self.state in _IN_A_GENERATION and now_ms >= self._sync_deadline_ms and not member.has_synced:
            return True
        return not member.is_waiting and member.seen_ms + member.session_timeout_ms <= now_ms

    # --- the log

    def begin_here(self, now_ms: int) -> None:
        """It was loaded: everybody has a session from now on to show that it lives."""
        for member in self.members.values():
            member.seen_ms = now_ms

    def adopt(self, members: Sequence[Member], generation: int) -> None:
        """Members that were in a group of the consumer protocol, with what they have."""
        leader = members[0].id if members else None
        self.roster.replace_all(members, leader, PROTOCOL_TYPE if members else "")
        self.generation = generation
        self.protocol = self.roster.elect_protocol() if members else None
        self.state = GroupState.STABLE if members else GroupState.EMPTY

    def end(self, code: ErrorCode) -> list[Effect]:
        """This broker coordinates the group no more, or it was deleted: whoever waits looks elsewhere."""
        self.state = GroupState.DEAD
        return [effect for member in self.members.values() for effect in release(member, code)]

    def note(self, kind: EventKind, member: Member, now_ms: int, news: TopicNews = NO_NEWS) -> None:
        self.timeline.note(kind, now_ms, self.generation, member.id, member.client_id, news=news)

    def _move_to(self, state: GroupState) -> None:
        assert state in NEXT_STATES[self.state], f"{self.state.name} -> {state.name}"
        self.state = state
