"""Several quorum cores on a harsh bus and harsh disks, in virtual time, from one seed; invariants after every step.

Messages are dropped, delayed, doubled and reordered; links are cut one way or both; nodes are killed between any two
effects of a Ready, lose what they had not synced, come back, or come back with an empty disk under another directory
id; voters are added and removed; logs are cut below snapshots. `World(seed).run()` raises AssertionError where one of
the invariants 24-29 of the quorum does not hold, or where the cluster does not recover once everything is healed.
"""

from __future__ import annotations

import heapq
import random
from collections.abc import Callable
from dataclasses import dataclass, replace
from uuid import UUID

from broker_engine.errors import BrokerError, ErrorCode
from broker_engine.quorum import ready as r
from broker_engine.quorum.election_state import ElectionState, VoterKey, encode_election_state
from broker_engine.quorum.log_index import LogPosition
from broker_engine.quorum.messages import Answer, FetchAnswer, FetchRequest, Request
from broker_engine.quorum.voter_set import Voter, VoterSet, encode_voters
from tests.broker_engine.quorum.bench_node import TIMING, Disk, Node
from tests.broker_engine.quorum.oracle import Oracle

REQUEST_TIMEOUT_MS = 600
LONG_POLL_MS = 300
HEAL_MS = 30_000
STEPS_MAX = 50_000
_FAULTS = ["kill", "storm", "start", "start", "start", "start", "cut", "heal", "snapshot", "change", "change"]
_REFUSALS = {
    ErrorCode.REQUEST_TIMED_OUT, ErrorCode.DUPLICATE_VOTER, ErrorCode.INVALID_REQUEST, ErrorCode.NOT_CONTROLLER,
    ErrorCode.VOTER_NOT_FOUND,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Caller:
    node: Node
    life: int


class World:
    def __init__(self, seed: int, *, node_count: int | None = None, is_harsh: bool = True) -> None:
        """Without `is_harsh` nothing goes wrong by itself, and all nodes are voters from the first."""
        self.dice = dice = random.Random(seed)
        self.now_ms = 0
        self.oracle = Oracle(TIMING)
        self.is_harsh = is_harsh
        # Drawn once a seed (swarm testing): a run with few kinds of faults goes deeper than one with all of them.
        self.drop_ratio = dice.choice([0.0, 0.02, 0.1])
        self.duplicate_ratio = dice.choice([0.0, 0.1])
        self.slow_ratio = dice.choice([0.0, 0.05])
        self.crash_in_step_ratio = dice.choice([0.0, 0.0005, 0.003])
        self.slow_flush_ratio = dice.choice([0.0, 0.2])
        self.snapshot_ratio = dice.choice([0.0, 0.3, 1.0])
        self.change_ratio = dice.choice([0.0, 0.5, 1.0])
        self.wipe_ratio = dice.choice([0.0, 0.3])
        self.cut_links: dict[tuple[int, int], None] = {}
        self.lost_keys: dict[VoterKey, None] = {}
        self._queue: list[tuple[int, int, Callable[[], None]]] = []
        self._sequence = 0
        self._step_count = 0
        self._directory_count = 0
        count = node_count or dice.choice([1, 2, 3, 3, 3, 4, 5])
        self.nodes = {number: Node(self, self._new_key(number)) for number in range(1, count + 1)}
        first = self.nodes[1]
        if is_harsh and dice.random() < 0.5:
            self._found_alone(first)
        else:
            self._found_together()
        for node in self.nodes.values():
            node.start()

    def _new_key(self, number: int) -> VoterKey:
        self._directory_count += 1
        return VoterKey(number, UUID(int=self._directory_count))

    def _found_alone(self, node: Node) -> None:
        self._write_first_voters([node])

    def _found_together(self) -> None:
        """As if it had grown long ago: everybody has the record that says so."""
        self._write_first_voters(list(self.nodes.values()))

    def _write_first_voters(self, founders: list[Node]) -> None:
        voters = VoterSet.of(Voter(node.key) for node in founders)
        entry = r.Entry(1, 0, (encode_voters(voters),))
        for node in founders:
            node.disk = Disk(encode_election_state(ElectionState(1)), [entry], 1)
        self.oracle.commit(entry)

    # --- time

    def later(self, in_ms: int, action: Callable[[], None]) -> None:
        self.at(self.now_ms + in_ms, action)

    def at(self, at_ms: int, action: Callable[[], None]) -> None:
        self._sequence += 1
        heapq.heappush(self._queue, (at_ms, self._sequence, action))

    def run_until(self, at_ms: int) -> None:
        while self._queue and self._queue[0][0] <= at_ms:
            self.now_ms, _, action = heapq.heappop(self._queue)
            self._step_count += 1
            assert self._step_count < STEPS_MAX, "nodes are busy with nothing"
            action()
        self.now_ms = at_ms

    # --- the bus

    def _is_cut(self, one: int, other: int) -> bool:
        return (one, other) in self.cut_links or (self.is_harsh and self.dice.random() < self.drop_ratio)

    def _delay_ms(self) -> int:
        if self.is_harsh and self.dice.random() < self.slow_ratio:
            return self.dice.randint(50, 3000)
        return self.dice.randint(1, 8)

    def flush_ms(self) -> int:
        if self.is_harsh and self.dice.random() < self.slow_flush_ratio:
            return self.dice.randint(50, 1500)
        return self.dice.randint(0, 12)

    def send(self, sender: Node, node_id: int, request: Request) -> None:
        target = self.nodes[node_id]
        fail = sender._in_this_life(lambda: _ignore(sender.step(r.SendFailed(node_id, request, is_refused=False))))
        if target.core is None and (sender.id, node_id) not in self.cut_links:
            refuse = sender._in_this_life(lambda: _ignore(sender.step(r.SendFailed(node_id, request, is_refused=True))))
            self.later(self._delay_ms(), refuse)
            return
        self.later(REQUEST_TIMEOUT_MS, fail)  # too late where an answer came
        copy_count = 2 if self.is_harsh and self.dice.random() < self.duplicate_ratio else 1
        caller = _Caller(sender, sender.life)
        for _ in range(copy_count):
            if not self._is_cut(sender.id, node_id):
                self.later(self._delay_ms(), lambda: self._deliver(caller, target, request))

    def _deliver(self, sender: _Caller, target: Node, request: Request) -> None:
        if target.core is None:
            return
        self.oracle.on_delivered(target, request, self.now_ms)
        answer = target.step(r.Asked(request))
        if answer is None:
            return
        if isinstance(answer, FetchAnswer) and isinstance(request, FetchRequest):
            self._answer_fetch(sender, target, request, answer, self.now_ms + LONG_POLL_MS)
        else:
            self._answer(sender, target, answer)

    def _answer_fetch(
        self, sender: _Caller, target: Node, request: FetchRequest, answer: FetchAnswer, until_ms: int
    ) -> None:
        """A long poll: waits for entries or a new high watermark."""
        entries = self._entries_for(target, answer)
        is_news = bool(entries) or not answer.has_place_for_entries or self._knows_more(answer, sender.node)
        if is_news or self.now_ms >= until_ms:
            self._answer(sender, target, replace(answer, entries=tuple(entries)))
            return

        def again() -> None:
            assert target.core is not None
            self._answer_fetch(sender, target, request, target.core.answer_fetch(request), until_ms)

        self.later(self.dice.randint(2, 30), target._in_this_life(again))

    def _entries_for(self, leader: Node, answer: FetchAnswer) -> list[r.Entry]:
        if not answer.has_place_for_entries:
            return []
        return leader.disk.from_offset(answer.fetch_offset)[: self.dice.randint(1, 5)]

    @staticmethod
    def _knows_more(answer: FetchAnswer, sender: Node) -> bool:
        known = sender.core.high_watermark if sender.core is not None else None
        return (answer.high_watermark or 0) > (known or 0)

    def _answer(self, sender: _Caller, target: Node, answer: Answer) -> None:
        if not self._is_cut(target.id, sender.node.id):
            self.later(self._delay_ms(), lambda: self._deliver_answer(sender, target.id, answer))

    @staticmethod
    def _deliver_answer(sender: _Caller, from_id: int, answer: Answer) -> None:
        """A connection dies with its process: an answer never reaches another life."""
        if sender.node.life == sender.life:
            sender.node.step(r.Answered(from_id, answer))

    def fetch_snapshot(self, node: Node, position: LogPosition) -> None:
        core = node.core
        assert core is not None
        leader_id = core.known_leader_id
        assert leader_id is not None
        self.later(self.dice.randint(1, 60), node._in_this_life(lambda: self._load_snapshot(node, leader_id, position)))

    def _load_snapshot(self, node: Node, leader_id: int, position: LogPosition) -> None:
        core, leader = node.core, self.nodes[leader_id]
        assert core is not None
        if core._loading != position:
            return  # another epoch began meanwhile
        is_there = leader.disk.snapshot.position == position and not self._is_cut(leader_id, node.id)
        if not is_there:
            node.step(r.SnapshotFailed(position))
            return
        node.disk.load(leader.disk.snapshot)
        self.oracle.on_snapshot_loaded(node, leader.disk.snapshot.digest)
        node.step(r.SnapshotLoaded(position, leader.disk.snapshot.voters))

    # --- faults

    def kill(self, node: Node, *, is_noticed: bool = True) -> None:
        """SIGKILL or power: connections break, and the redial is refused, unless the machine itself is gone."""
        node.crash()
        if is_noticed:
            for other in self.nodes.values():
                if other is not node and (other.id, node.id) not in self.cut_links:
                    lost = other._in_this_life(lambda o=other: _ignore(o.step(r.PeerLost(node.id, True))))  # type: ignore[misc]
                    self.later(self.dice.randint(0, 20), lost)

    def wipe(self, node: Node) -> None:
        self.lost_keys[node.key] = None
        node.key = self._new_key(node.id)
        node.disk = Disk()

    def may_wipe(self, node: Node) -> bool:
        """Whatever set of voters is or becomes the one that counts, a majority of it keeps its disks."""
        lost = {*self.lost_keys, node.key}
        return all(_keeps_majority(voters, lost) for voters in self._sets_about())

    def _sets_about(self) -> list[VoterSet]:
        return [voters for node in self.nodes.values() for _, voters in node.disk.voter_sets()]

    def _random_fault(self) -> None:
        node = self.dice.choice(list(self.nodes.values()))
        match self.dice.choice(_FAULTS):
            case "storm":
                for other in self.nodes.values():
                    if other.core is not None and self.dice.random() < 0.6:
                        self.kill(other, is_noticed=self.dice.random() < 0.7)
            case "kill" if node.core is not None:
                self.kill(node, is_noticed=self.dice.random() < 0.7)
                if self.dice.random() < self.wipe_ratio and self.may_wipe(node):
                    self.wipe(node)
            case "start" if node.core is None:
                node.start()
            case "cut":
                self._cut_some()
            case "heal":
                self.cut_links.clear()
            case "snapshot" if node.core is not None and self.dice.random() < self.snapshot_ratio:
                node.take_snapshot()
            case "change" if self.dice.random() < self.change_ratio:
                self._change_voters()

    def _cut_some(self) -> None:
        group = {number for number in self.nodes if self.dice.random() < 0.5}
        is_one_way = self.dice.random() < 0.3
        for one in sorted(group):
            for other in self.nodes:
                if other not in group:
                    self.cut_links[one, other] = None
                    if not is_one_way:
                        self.cut_links[other, one] = None

    def leaders(self) -> list[Node]:
        return [node for node in self.nodes.values() if node.core is not None and node.core.is_leader]

    def _change_voters(self) -> None:
        for leader in self.leaders():
            core = leader.core
            assert core is not None
            other = self.dice.choice(list(self.nodes.values()))
            gone = [key for key in core.voters.keys if key in self.lost_keys]
            if gone and self.dice.random() < 0.7:
                self._try(leader, r.RemoveVoter(gone[0]))
            elif other.key in core.voters:
                if _keeps_majority(core.voters.removed(other.key), set(self.lost_keys)):
                    self._try(leader, r.RemoveVoter(other.key))
            else:
                self._try(leader, r.AddVoter(Voter(other.key)))

    def _try(self, leader: Node, event: r.Event) -> None:
        try:
            leader.step(event)
        except BrokerError as error:
            if error.code not in _REFUSALS:
                raise

    def propose(self) -> None:
        for leader in self.leaders():
            values = tuple(b"\x01" + self.dice.randbytes(3) for _ in range(self.dice.randint(1, 3)))
            self._try(leader, r.Propose(values))

    # --- a whole run

    def run(self, *, harsh_ms: int = 12_000) -> None:
        while self.now_ms < harsh_ms:
            self.run_until(self.now_ms + self.dice.randint(1, 250))
            self.propose()
            if self.dice.random() < 0.5:
                self._random_fault()
        self.heal()
        self.check_recovered()

    def heal(self) -> None:
        self.is_harsh = False
        self.cut_links.clear()
        for node in self.nodes.values():
            if node.core is None:
                node.start()

    def settle(self) -> Node:
        """Until everybody follows one leader; that leader."""
        self.check_recovered()
        (leader,) = self.leaders()
        return leader

    def wait_until(self, is_so: Callable[[], bool], *, within_ms: int) -> None:
        until_ms = self.now_ms + within_ms
        while not is_so():
            assert self.now_ms < until_ms, f"not within {within_ms} ms"
            self.run_until(self.now_ms + 5)

    def isolate(self, node: Node) -> None:
        for other in self.nodes:
            if other != node.id:
                self.cut_links[node.id, other] = self.cut_links[other, node.id] = None

    def check_recovered(self) -> None:
        """A leader within the bound; what it then writes reaches everybody."""
        until_ms = self.now_ms + HEAL_MS
        while not self._is_settled() and self.now_ms < until_ms:
            self.run_until(self.now_ms + 200)
            self.propose()
        assert self._is_settled(), f"no common log {HEAL_MS} ms after everything was healed"

    def _is_settled(self) -> bool:
        leaders = self.leaders()
        if not leaders:
            return False
        leader = max(leaders, key=lambda node: node.core.epoch if node.core else 0)
        core = leader.core
        assert core is not None
        if not core.has_committed_in_epoch:
            return False
        others = [node.core for node in self.nodes.values() if node.core is not None and node is not leader]
        floor = core.epoch_start_offset + 1
        return all(other.epoch == core.epoch and (other.high_watermark or 0) >= floor for other in others)


def _keeps_majority(voters: VoterSet, lost: set[VoterKey]) -> bool:
    return len([key for key in voters.keys if key not in lost]) >= voters.majority_count


def _ignore(_answer: Answer | None) -> None:
    """Only requests have answers."""
