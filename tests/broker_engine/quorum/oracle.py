"""What must hold of a quorum at every moment: invariants 24-29, checked from outside, by what nodes do and say."""

from __future__ import annotations

import zlib
from itertools import pairwise
from typing import TYPE_CHECKING

from broker_engine.quorum.control import is_leader_change
from broker_engine.quorum.election_state import VoterKey, decode_election_state
from broker_engine.quorum.messages import Answer, FetchRequest, Request, VoteAnswer, VoteRequest
from broker_engine.quorum.ready import Entry
from broker_engine.quorum.state import Timing
from broker_engine.quorum.voter_set import VoterSet

if TYPE_CHECKING:
    from tests.broker_engine.quorum.bench_node import Node


class Oracle:
    def __init__(self, timing: Timing) -> None:
        self._timing = timing
        self.leaders: dict[int, VoterKey] = {}
        self._votes: dict[tuple[VoterKey, int], VoterKey] = {}
        self.committed: dict[int, Entry] = {}
        """By base offset."""
        self.committed_end_offset = 0
        self._digests: dict[int, int] = {0: 0}
        """Of everything committed, by each offset at which an entry ends."""
        self._high_watermarks: dict[VoterKey, int] = {}
        self._led_since_ms: dict[tuple[VoterKey, int], int] = {}
        self._fetched_ms: dict[tuple[VoterKey, int], dict[VoterKey, int]] = {}
        self._sets_seen: dict[tuple[VoterKey, int], tuple[VoterSet, int]] = {}
        self._epoch_begins: dict[int, Entry] = {}
        self._written: dict[tuple[int, int], tuple[bytes, ...]] = {}

    # --- 24, 27: votes and leaders

    def on_start(self, node: Node) -> None:
        self._high_watermarks[node.key] = node.disk.snapshot.position.end_offset

    def on_request(self, node: Node, request: Request) -> None:
        if isinstance(request, VoteRequest) and not request.is_pre_vote:
            self._vote(node, request.epoch, request.candidate)
        if isinstance(request, FetchRequest):
            assert request.fetch_offset <= node.disk.synced_end_offset, "a fetch speaks of what is durable"

    def on_answer(self, node: Node, answer: Answer) -> None:
        if isinstance(answer, VoteAnswer) and answer.is_granted and not answer.is_pre_vote:
            assert answer.voter == node.key, "nobody votes as its former self"
            self._vote(node, answer.epoch, None)

    def _vote(self, node: Node, epoch: int, candidate: VoterKey | None) -> None:
        assert node.disk.state is not None
        state = decode_election_state(node.disk.state)
        assert state.epoch == epoch, "the epoch of a vote is on disk before anybody hears of it"
        assert state.voted_for is not None, "and so is the vote"
        assert candidate in {None, state.voted_for}
        assert self._votes.setdefault((node.key, epoch), state.voted_for) == state.voted_for, "one vote an epoch"

    def on_append(self, entry: Entry) -> None:
        first = self._epoch_begins.setdefault(entry.epoch, entry)
        if first is entry and entry.base_offset:  # the founders' record stands for a log that was there before
            assert entry.control_key is not None
            assert is_leader_change(entry.control_key), "an epoch begins with LeaderChange"
        known = self._written.setdefault((entry.epoch, entry.base_offset), entry.values)
        assert known == entry.values, "an epoch and offset name one entry"

    def check(self, node: Node) -> None:
        core = node.core
        assert core is not None
        if core.is_leader:
            assert self.leaders.setdefault(core.epoch, node.key) == node.key, "at most one leader an epoch"
            self._check_quorum_of(node)
        self._check_voter_sets(node)

    # --- 29: a leader that nobody fetches from

    def on_delivered(self, node: Node, request: Request, now_ms: int) -> None:
        if isinstance(request, FetchRequest):
            self._fetched_ms.setdefault((node.key, request.epoch), {})[request.replica] = now_ms

    def _check_quorum_of(self, node: Node) -> None:
        core = node.core
        assert core is not None
        now_ms = node.world.now_ms
        since_ms = self._led_since_ms.setdefault((node.key, core.epoch), now_ms)
        fetched = self._fetched_ms.get((node.key, core.epoch), {})
        heard_ms = [now_ms if key == core.me else fetched.get(key, since_ms) for key in core.voters.keys]
        majority_ms = sorted(heard_ms, reverse=True)[core.voters.majority_count - 1]
        # Twice: the clock starts again only when a whole majority has been heard.
        limit_ms = max(majority_ms, self._changed_ms(node)) + 2 * self._timing.check_quorum_ms
        assert now_ms <= limit_ms, "a leader without a majority resigns"

    def _changed_ms(self, node: Node) -> int:
        """A change of voters gives the new ones time to be heard."""
        core = node.core
        assert core is not None
        key = (node.key, core.epoch)
        before, since_ms = self._sets_seen.setdefault(key, (core.voters, node.world.now_ms))
        if before != core.voters:
            since_ms = node.world.now_ms
            self._sets_seen[key] = (core.voters, since_ms)
        return since_ms

    # --- 25, 26: what is committed

    def commit(self, entry: Entry) -> None:
        self.committed[entry.base_offset] = entry
        text = repr((entry.epoch, entry.base_offset, entry.values)).encode()
        self._digests[entry.end_offset] = zlib.crc32(text, self._digests[entry.base_offset])
        self.committed_end_offset = entry.end_offset

    def digest(self, end_offset: int) -> int:
        return self._digests[end_offset]

    def on_snapshot_loaded(self, node: Node, digest: int) -> None:
        assert digest == self._digests[node.disk.snapshot.position.end_offset]

    def on_high_watermark(self, node: Node, high_watermark: int) -> None:
        core = node.core
        assert core is not None
        assert high_watermark >= self._high_watermarks[node.key], "a high watermark never moves back"
        self._high_watermarks[node.key] = high_watermark
        if core.is_leader or core.role.name in {"RESIGNED", "UNATTACHED"}:
            self._check_own_epoch(node, high_watermark)
        for entry in node.disk.log:
            if entry.end_offset <= high_watermark:
                self._check_committed(entry)

    def _check_own_epoch(self, node: Node, high_watermark: int) -> None:
        core = node.core
        assert core is not None
        if self.leaders.get(core.epoch) == node.key:
            assert high_watermark >= self._epoch_begins[core.epoch].end_offset, (
                "nothing is committed before LeaderChange"
            )

    def _check_committed(self, entry: Entry) -> None:
        if entry.base_offset in self.committed:
            assert self.committed[entry.base_offset] == entry, "what is committed never changes"
            return
        assert entry.base_offset == self.committed_end_offset, "commits leave no gap"
        self.commit(entry)

    # --- 28: voters

    def _check_voter_sets(self, node: Node) -> None:
        core = node.core
        assert core is not None
        sets = node.disk.voter_sets()
        for (_, before), (_, after) in pairwise(sets):
            changed = set(before.keys) ^ set(after.keys)
            assert len(changed) <= 1, "voters change one at a time"
        if core.is_leader:
            pending = [offset for offset, _ in sets if offset >= (core.high_watermark or 0)]
            own = [offset for offset in pending if offset >= core.epoch_start_offset]
            assert len(own) <= 1, "and the next only after the last is committed"
