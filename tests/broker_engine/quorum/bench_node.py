"""A node of the bench: a core on a disk that loses what was not synced, killed between any two effects of a Ready."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from broker_engine.quorum import ready as r
from broker_engine.quorum.core import QuorumCore
from broker_engine.quorum.election_state import VoterKey, decode_election_state, encode_election_state
from broker_engine.quorum.following import voter_sets_in
from broker_engine.quorum.log_index import NO_LOG, LogIndex, LogPosition
from broker_engine.quorum.messages import Answer
from broker_engine.quorum.state import Timing
from broker_engine.quorum.voter_set import VoterSet

if TYPE_CHECKING:
    from tests.broker_engine.quorum.bench import World

TIMING = Timing()


@dataclass(frozen=True, slots=True)
class Snapshot:
    position: LogPosition
    voters: VoterSet
    digest: int
    """Of everything committed below its end."""


@dataclass(slots=True)
class Disk:
    state: bytes | None = None
    log: list[r.Entry] = field(default_factory=list)
    synced_count: int = 0
    snapshot: Snapshot = Snapshot(NO_LOG, VoterSet(), 0)

    @property
    def end_offset(self) -> int:
        return self.log[-1].end_offset if self.log else self.snapshot.position.end_offset

    @property
    def synced_end_offset(self) -> int:
        return self.log[self.synced_count - 1].end_offset if self.synced_count else self.snapshot.position.end_offset

    def lose_unsynced(self, dice: random.Random) -> None:
        self.log = self.log[: dice.randint(self.synced_count, len(self.log))]
        self.synced_count = len(self.log)  # recovery syncs what it found

    def truncate_to(self, offset: int) -> None:
        self.log = [entry for entry in self.log if entry.end_offset <= offset]
        self.synced_count = len(self.log)

    def load(self, snapshot: Snapshot) -> None:
        self.snapshot, self.log, self.synced_count = snapshot, [], 0

    def from_offset(self, offset: int) -> list[r.Entry]:
        return [entry for entry in self.log if entry.base_offset >= offset]

    def voter_sets(self) -> list[tuple[int, VoterSet]]:
        sets = [(self.snapshot.position.end_offset - 1, self.snapshot.voters)] if self.snapshot.voters else []
        return sets + [found for entry in self.log for found in voter_sets_in(entry)]

    def voters_at(self, offset: int) -> VoterSet:
        return next((voters for at, voters in reversed(self.voter_sets()) if at < offset), VoterSet())

    def epoch_starts(self) -> list[tuple[int, int]]:
        return [(entry.epoch, entry.base_offset) for entry in self.log]


class Crash(Exception):
    """The node dies between two effects."""


class Node:
    def __init__(self, world: World, key: VoterKey) -> None:
        self.world = world
        self.key = key
        self.disk = Disk()
        self.core: QuorumCore | None = None
        self.life = 0
        self.is_flushing = False
        self.tick_at_ms: int | None = None

    @property
    def id(self) -> int:
        return self.key.node_id

    def start(self) -> None:
        disk, world = self.disk, self.world
        state = None if disk.state is None else decode_election_state(disk.state)
        index = LogIndex(
            epoch_starts=_rising(disk.epoch_starts()), end_offset=disk.end_offset, start=disk.snapshot.position
        )
        snapshot_end = disk.snapshot.position.end_offset
        self.core = QuorumCore(
            me=self.key,
            state=state,
            log=index,
            voters=disk.voter_sets(),
            random_below=world.dice.randrange,
            timing=TIMING,
            bootstrap_ids=tuple(world.nodes),
            high_watermark=snapshot_end or None,
        )
        self.life += 1
        self.is_flushing = False
        self.tick_at_ms = None
        world.oracle.on_start(self)
        self.step(r.Start())

    def crash(self) -> None:
        self.core = None
        self.life += 1
        self.disk.lose_unsynced(self.world.dice)

    def step(self, event: r.Event) -> Answer | None:
        """The answer, if there is one and the node lived to send it."""
        if self.core is None:
            return None
        ready = self.core.step(event, self.world.now_ms)
        try:
            self._carry_out(ready)
        except Crash:
            self.world.kill(self)
            return None
        self.world.oracle.check(self)
        self._plan_tick()
        return ready.answer

    def _carry_out(self, ready: r.Ready) -> None:
        if ready.persist_state is not None:
            self._may_crash()
            self.disk.state = encode_election_state(ready.persist_state)
        if ready.truncate_to is not None:
            self._may_crash()
            self.disk.truncate_to(ready.truncate_to)
        for entry in ready.append:
            self._may_crash()
            self.disk.log.append(entry)
            self.world.oracle.on_append(entry)
        self._may_crash()
        self._plan_flush()
        for node_id, request in ready.send:
            self.world.oracle.on_request(self, request)
            self.world.send(self, node_id, request)
        if ready.answer is not None:
            self.world.oracle.on_answer(self, ready.answer)
        if ready.fetch_snapshot is not None:
            self.world.fetch_snapshot(self, ready.fetch_snapshot)
        if ready.high_watermark is not None:
            self.world.oracle.on_high_watermark(self, ready.high_watermark)

    def _may_crash(self) -> None:
        if self.world.is_harsh and self.world.dice.random() < self.world.crash_in_step_ratio:
            raise Crash

    def _plan_flush(self) -> None:
        if self.is_flushing or self.disk.synced_count == len(self.disk.log):
            return
        self.is_flushing = True
        end_offset = self.disk.end_offset
        self.world.later(self.world.flush_ms(), self._in_this_life(lambda: self._flushed(end_offset)))

    def _flushed(self, end_offset: int) -> None:
        self.is_flushing = False
        self.disk.synced_count = sum(1 for entry in self.disk.log if entry.end_offset <= end_offset)
        self.step(r.Flushed(min(end_offset, self.disk.end_offset)))
        self._plan_flush()

    def _plan_tick(self) -> None:
        if self.core is None:
            return
        deadline_ms = self.core.next_deadline_ms
        if deadline_ms is not None and deadline_ms != self.tick_at_ms:
            self.tick_at_ms = deadline_ms
            self.world.at(max(deadline_ms, self.world.now_ms), self._in_this_life(lambda: self._tick(deadline_ms)))

    def _tick(self, deadline_ms: int) -> None:
        if self.tick_at_ms == deadline_ms:
            self.tick_at_ms = None
            self.step(r.Tick())

    def _in_this_life(self, action: Callable[[], None]) -> Callable[[], None]:
        life = self.life

        def run() -> None:
            if self.life == life and self.core is not None:
                action()

        return run

    def take_snapshot(self) -> None:
        core = self.core
        assert core is not None
        end_offset = core.high_watermark
        if not end_offset or end_offset <= core.log.start_offset or end_offset > self.disk.synced_end_offset:
            return
        position = LogPosition(core.log.epoch_before(end_offset), end_offset)
        voters = self.disk.voters_at(end_offset)
        self.disk.snapshot = Snapshot(position, voters, self.world.oracle.digest(end_offset))
        kept = self.disk.from_offset(end_offset)
        self.disk.synced_count -= len(self.disk.log) - len(kept)
        self.disk.log = kept
        self.step(r.LogShortened(position))


def _rising(starts: list[tuple[int, int]]) -> list[tuple[int, int]]:
    rising: list[tuple[int, int]] = []
    for epoch, offset in starts:
        if not rising or epoch > rising[-1][0]:
            rising.append((epoch, offset))
    return rising
