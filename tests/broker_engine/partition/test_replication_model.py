"""One term of a leader against a brute-force model: true logs as sets, a controller that compares and sets.

The model knows what the core cannot: what followers really have, what the controller has decided but not yet told. It
counts what is committed record by record instead of by comparing ends.
"""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from broker_engine.errors import ErrorCode
from broker_engine.log.partition_log import AppendResult
from broker_engine.partition.core import (
    AckDurability,
    AdvanceHighWatermark,
    Effect,
    IsrProposal,
    PartitionCore,
    PartitionSettings,
    ProposeIsr,
)
from broker_engine.records.batch import parse_header
from broker_engine.records.builder import NewRecord, build_batch

LEADER, REPLICAS, LAG_MS = 1, (1, 2, 3), 100
HEADER = parse_header(build_batch([NewRecord(1000, None, b"v")]))
followers = st.sampled_from(REPLICAS[1:])


@dataclass(frozen=True)
class State:
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    partition_epoch: int


class Replica:
    def __init__(self) -> None:
        self.written: set[int] = set()
        self.durable: set[int] = set()
        self.seen: tuple[int, int] | None = None
        """Ends (written, durable) that the leader was told in this term."""


class OneTerm(RuleBasedStateMachine):
    @initialize(
        is_fsync=st.booleans(),
        min_insync=st.integers(1, 3),
        old_count=st.integers(0, 4),
        is_full=st.booleans(),
    )
    def elect(self, *, is_fsync: bool, min_insync: int, old_count: int, is_full: bool) -> None:
        self.is_fsync, self.min_insync = is_fsync, min_insync
        self.now_ms = 1
        self.isr: tuple[int, ...] = REPLICAS if is_full else (1, 2)
        self.partition_epoch = 0
        self.fenced: list[int] = []
        self.replicas = {number: Replica() for number in REPLICAS}
        for number in self.isr:
            self.replicas[number].written = set(range(old_count))
            self.replicas[number].durable = set(range(old_count))
        self.proposals: list[IsrProposal] = []
        self.answers: list[tuple[IsrProposal, ErrorCode, tuple[int, ...], int]] = []
        self.high_watermark = 0
        durability = AckDurability.FSYNC if is_fsync else AckDurability.PAGE_CACHE
        self.core = PartitionCore(
            leader_epoch=1,
            replicas=REPLICAS,
            isr=self.isr,
            log_start_offset=0,
            log_end_offset=old_count,
            durable_end_offset=old_count,
            settings=PartitionSettings(
                ack_durability=durability, min_insync_replicas=min_insync, lag_time_ms_max=LAG_MS
            ),
            is_eligible=lambda broker_id, broker_epoch: broker_id not in self.fenced,
            now_ms=self.now_ms,
        )

    def take(self, effects: list[Effect]) -> None:
        for effect in effects:
            if isinstance(effect, ProposeIsr):
                self.proposals.append(effect.proposal)
            elif isinstance(effect, AdvanceHighWatermark):
                assert effect.offset > self.high_watermark
                self.high_watermark = effect.offset

    @rule()
    def append(self) -> None:
        end = self.core.log_end_offset
        self.replicas[LEADER].written.add(end)
        self.take(self.core.on_appended(AppendResult(end, end, -1), HEADER, 0))

    @rule()
    def flush_leader(self) -> None:
        self.replicas[LEADER].durable = set(self.replicas[LEADER].written)
        self.take(self.core.on_flushed(self.core.log_end_offset))

    @rule(number=followers, count=st.sampled_from([1, 9]), is_flushed=st.booleans())
    def replicate(self, number: int, count: int, *, is_flushed: bool) -> None:
        replica = self.replicas[number]
        end = len(replica.written)
        replica.written |= set(range(end, min(end + count, self.core.log_end_offset)))
        if is_flushed:
            replica.durable = set(replica.written)

    @rule(number=followers, is_new=st.booleans())
    def fetch(self, number: int, *, is_new: bool) -> None:
        if is_new:
            self.replicate(number, 9, is_flushed=True)
        replica = self.replicas[number]
        replica.seen = (len(replica.written), len(replica.durable))
        self.take(self.core.on_follower_fetch(number, 5, *replica.seen, self.now_ms))

    @rule(passed_ms=st.sampled_from([10, LAG_MS + 1]))
    def tick(self, passed_ms: int) -> None:
        self.now_ms += passed_ms
        self.take(self.core.on_tick(self.now_ms))

    @precondition(lambda self: self.proposals)
    @rule(fate=st.sampled_from(["answered", "answer lost", "request lost"]))
    def decide(self, fate: str) -> None:
        """The controller compares and sets; its answer may get lost, and so may the request."""
        proposal = self.proposals.pop(0)
        if fate == "request lost":
            self.answers.append((proposal, ErrorCode.REQUEST_TIMED_OUT, (), -1))
            return
        code = self._decide(proposal)
        is_lost = fate == "answer lost"
        told = ErrorCode.REQUEST_TIMED_OUT if is_lost else code
        self.answers.append((proposal, told, self.isr, self.partition_epoch))

    def _decide(self, proposal: IsrProposal) -> ErrorCode:
        if proposal.partition_epoch != self.partition_epoch:
            return ErrorCode.INVALID_UPDATE_VERSION
        if any(member in self.fenced for member in proposal.isr):
            return ErrorCode.INELIGIBLE_REPLICA
        self.isr, self.partition_epoch = proposal.isr, self.partition_epoch + 1
        return ErrorCode.NONE

    @precondition(lambda self: self.answers)
    @rule()
    def deliver(self) -> None:
        proposal, code, isr, partition_epoch = self.answers.pop(0)
        self.take(self.core.on_isr_answer(proposal, code, isr, partition_epoch))

    @rule()
    def show_image(self) -> None:
        self.take(self.core.on_metadata(State(REPLICAS, self.isr, self.partition_epoch)))

    @rule(number=followers)
    def fence(self, number: int) -> None:
        if number not in self.fenced:
            self.fenced.append(number)
        if number in self.isr:
            self.isr = tuple(member for member in self.isr if member != number)
            self.partition_epoch += 1

    @rule(number=followers)
    def unfence(self, number: int) -> None:
        if number in self.fenced:
            self.fenced.remove(number)

    @invariant()
    def every_member_that_the_controller_counts_has_what_is_committed(self) -> None:
        """Rule 11: whoever the controller may elect has it all, also where the leader does not know of the change."""
        for member in self.isr:
            replica = self.replicas[member]
            held = replica.durable if self.is_fsync else replica.written
            assert set(range(self.core.high_watermark)) <= held

    @invariant()
    def the_maximal_isr_holds_the_controllers(self) -> None:
        assert set(self.isr) <= set(self.core.maximal_isr)

    @invariant()
    def all_that_everybody_has_is_committed(self) -> None:
        """Nothing is held back that all replicas are known to have, where there are enough in sync."""
        if len(self.core.isr) < self.min_insync:
            return
        leader = self.replicas[LEADER]
        count = len(leader.durable) if self.is_fsync else len(leader.written)
        seen = [replica.seen for number, replica in self.replicas.items() if number != LEADER]
        ends = [-1 if ends is None else ends[self.is_fsync] for ends in seen]
        assert self.core.high_watermark >= min(count, *ends)

    @invariant()
    def offsets_are_in_order(self) -> None:
        core = self.core
        assert core.high_watermark == max(self.high_watermark, core.high_watermark)
        assert 0 <= core.high_watermark <= core.log_end_offset


TestOneTerm = OneTerm.TestCase
TestOneTerm.settings = settings(max_examples=150, stateful_step_count=40, deadline=None)
