"""Members that tests move through a group, and what they were answered."""

from __future__ import annotations

from typing import Any

from broker_engine.errors import ErrorCode
from broker_engine.groups.classic import ClassicGroup
from broker_engine.groups.effects import Effect, JoinAnswer, Reply, Store, SyncAnswer
from broker_engine.groups.joining import join, on_stored
from broker_engine.groups.member import JoinAsk, SyncAsk
from broker_engine.groups.settings import GroupSettings

INITIAL_DELAY_MS = 3_000
SESSION_MS = 10_000
REBALANCE_MS = 60_000


class Bench:
    """One group, a clock that the test moves, and every answer by the name of whoever waits for it."""

    def __init__(self, **settings: Any) -> None:
        self.group = ClassicGroup("readers", GroupSettings(**settings))
        self.now_ms = 0
        self.answers: dict[str, JoinAnswer | SyncAnswer] = {}
        self.stores: list[Store] = []
        self._next_id = 0

    def join(
        self,
        who: str,
        member_id: str = "",
        *,
        instance: str | None = None,
        protocols: str = "range",
        metadata: bytes = b"",
        **more: Any,
    ) -> JoinAnswer | None:
        ask = JoinAsk(
            **{
                "member_id": member_id,
                "instance_id": instance,
                "client_id": who,
                "client_host": "/127.0.0.1",
                "session_timeout_ms": SESSION_MS,
                "rebalance_timeout_ms": REBALANCE_MS,
                "protocol_type": "consumer",
                "protocols": tuple((name, metadata or f"{who} by {name}".encode()) for name in protocols.split()),
                "needs_known_id": False,
                **more,
            }
        )
        self._take(join(self.group, ask, who, self.now_ms, self._new_id))
        answer = self.answers.pop(who, None)
        assert answer is None or isinstance(answer, JoinAnswer)
        return answer

    def sync(self, who: str, member_id: str, assignments: dict[str, bytes] | None = None, **more: Any) -> None:
        fields: dict[str, Any] = {"instance_id": None, "generation": self.group.generation, **more}
        ask = SyncAsk(member_id=member_id, assignments=tuple((assignments or {}).items()), **fields)
        self._take(self.group.sync(ask, who, self.now_ms))

    def stored(self, code: ErrorCode = ErrorCode.NONE, store: Store | None = None) -> None:
        self._take(on_stored(self.group, store or self.stores[-1], code, self.now_ms))

    def leave(self, member_id: str, instance: str | None = None) -> ErrorCode:
        code, effects = self.group.leave(member_id, instance, self.now_ms)
        self._take(effects)
        return code

    def heartbeat(self, member_id: str, generation: int | None = None, instance: str | None = None) -> ErrorCode:
        asked = self.group.generation if generation is None else generation
        return self.group.heartbeat(member_id, instance, asked, self.now_ms)

    def wait(self, wait_ms: int) -> None:
        """Time passes, and the group is called whenever it wanted to be."""
        until_ms = self.now_ms + wait_ms
        while (deadline_ms := self.group.next_deadline_ms) is not None and deadline_ms <= until_ms:
            self.now_ms = max(self.now_ms, deadline_ms)
            self._take(self.group.on_time(self.now_ms))
        self.now_ms = until_ms

    def joined(self, who: str) -> JoinAnswer:
        answer = self.answers.pop(who)
        assert isinstance(answer, JoinAnswer)
        return answer

    def synced(self, who: str) -> SyncAnswer:
        answer = self.answers.pop(who)
        assert isinstance(answer, SyncAnswer)
        return answer

    def _take(self, effects: list[Effect]) -> None:
        for effect in effects:
            if isinstance(effect, Reply):
                assert isinstance(effect.waiter, str)
                assert effect.waiter not in self.answers, "one question, one answer"
                self.answers[effect.waiter] = effect.answer
            else:
                self.stores.append(effect)

    def _new_id(self, ask: JoinAsk) -> str:
        self._next_id += 1
        return f"{ask.client_id}-{self._next_id}"


def stable(*names: str, **settings: Any) -> tuple[Bench, dict[str, str]]:
    """A group of these members, each with its own name as assignment; and their member ids."""
    bench = Bench(**settings)
    for name in names:
        bench.join(name)
    bench.wait(2 * INITIAL_DELAY_MS)
    ids = {name: bench.joined(name).member_id for name in names}
    assigned = {member_id: name.encode() for name, member_id in ids.items()}
    for name, member_id in ids.items():
        bench.sync(name, member_id, assigned if member_id == bench.group.leader else None)
    bench.stored()
    for name in names:
        assert bench.synced(name).assignment == name.encode()
    return bench, ids
