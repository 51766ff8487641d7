"""A leader with followers: what is committed when, who joins the ISR and who leaves it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pytest

from broker_engine.errors import BrokerError, ErrorCode
from broker_engine.log.partition_log import AppendResult
from broker_engine.partition.core import (
    AckDurability,
    AdvanceHighWatermark,
    Effect,
    FailAcks,
    IsrProposal,
    PartitionCore,
    PartitionSettings,
    ProposeIsr,
)
from broker_engine.records.batch import parse_header
from broker_engine.records.builder import NewRecord, build_batch

LAG_MS = 1000
HEADER = parse_header(build_batch([NewRecord(1000, None, b"v")]))


@dataclass(frozen=True)
class State:
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    partition_epoch: int


class Leader:
    """Node 1 of 1, 2, 3 with a log of five records, in its third term."""

    def __init__(
        self,
        *,
        isr: tuple[int, ...] = (1, 2, 3),
        is_fsync: bool = False,
        min_insync: int = 2,
        is_eligible: Callable[[int, int], bool] = lambda broker_id, broker_epoch: True,
    ) -> None:
        durability = AckDurability.FSYNC if is_fsync else AckDurability.PAGE_CACHE
        self.core = PartitionCore(
            leader_epoch=3,
            replicas=(1, 2, 3),
            isr=isr,
            node_id=1,
            log_start_offset=0,
            log_end_offset=5,
            durable_end_offset=5,
            high_watermark=4,
            partition_epoch=7,
            settings=PartitionSettings(
                ack_durability=durability, min_insync_replicas=min_insync, lag_time_ms_max=LAG_MS
            ),
            is_eligible=is_eligible,
        )

    def append(self, count: int = 1) -> list[Effect]:
        effects = []
        for _ in range(count):
            end = self.core.log_end_offset
            effects += self.core.on_appended(AppendResult(end, end, -1), HEADER, 0)
        return effects

    def fetch(
        self, replica: int, offset: int, durable: int | None = None, *, at_ms: int = 0, epoch: int = 9
    ) -> list[Effect]:
        return self.core.on_follower_fetch(replica, epoch, offset, offset if durable is None else durable, at_ms)


def test_what_all_in_sync_replicas_have_is_committed() -> None:
    leader = Leader()
    assert leader.append(3) == []
    assert leader.fetch(2, 8) == []
    assert leader.fetch(3, 6) == [AdvanceHighWatermark(6)]
    assert leader.fetch(3, 8) == [AdvanceHighWatermark(8)]


def test_in_fsync_mode_what_they_have_on_disk_counts() -> None:
    leader = Leader(is_fsync=True)
    leader.append(2)
    leader.core.on_flushed(7)
    leader.fetch(2, 7, 7)
    assert leader.fetch(3, 7, 5) == [AdvanceHighWatermark(5)]
    assert leader.fetch(3, 7, 7) == [AdvanceHighWatermark(7)]


def test_a_new_term_commits_nothing_before_its_followers_have_fetched_in_it() -> None:
    leader = Leader()
    assert leader.core.high_watermark == 4
    assert not leader.core.knows_latest_offset
    leader.fetch(2, 5)
    assert leader.fetch(3, 5) == [AdvanceHighWatermark(5)]
    assert leader.core.knows_latest_offset


def test_below_min_insync_nothing_is_committed() -> None:
    leader = Leader(isr=(1,), min_insync=2)
    leader.append()
    assert leader.core.high_watermark == 4
    with pytest.raises(BrokerError) as raised:
        leader.core.decide_produce(HEADER, -1, 0)
    assert raised.value.code is ErrorCode.NOT_ENOUGH_REPLICAS


def test_waiting_producers_are_told_when_the_isr_falls_below_the_minimum() -> None:
    leader = Leader()
    assert leader.core.on_metadata(State((1, 2, 3), (1,), 8)) == [FailAcks(ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND)]


def test_a_replica_joins_once_it_has_all_that_is_committed_and_the_epochs_start() -> None:
    leader = Leader(isr=(1, 2))
    leader.append(2)
    leader.fetch(2, 7)
    assert leader.fetch(3, 4) == []
    (effect,) = leader.fetch(3, 7)
    assert effect == ProposeIsr(IsrProposal(3, 7, (1, 2, 3), (-1, 9, 9)))
    assert leader.core.maximal_isr == (1, 2, 3)
    assert leader.core.isr == (1, 2)


def test_in_fsync_mode_a_replica_joins_with_what_it_has_on_disk() -> None:
    leader = Leader(isr=(1, 2), is_fsync=True)
    leader.fetch(2, 5, 5)
    assert leader.fetch(3, 5, 3) == []
    (effect,) = leader.fetch(3, 5, 5)
    assert isinstance(effect, ProposeIsr)


def test_a_fenced_broker_or_an_earlier_life_does_not_join() -> None:
    leader = Leader(isr=(1, 2), is_eligible=lambda broker_id, broker_epoch: broker_epoch == 10)
    leader.fetch(2, 5)
    assert leader.fetch(3, 5, epoch=9) == []
    assert len(leader.fetch(3, 5, epoch=10)) == 1
    with pytest.raises(BrokerError):
        leader.fetch(3, 5, epoch=9)


def test_who_may_have_been_admitted_counts_until_the_controller_has_spoken() -> None:
    leader = Leader(isr=(1, 2))
    leader.fetch(2, 5)
    leader.fetch(3, 5)
    leader.append()
    assert leader.fetch(2, 6) == []
    assert leader.core.high_watermark == 5
    proposal = leader.core.proposal
    assert proposal is not None
    assert leader.core.on_isr_answer(proposal, ErrorCode.REQUEST_TIMED_OUT) == [ProposeIsr(proposal)]
    assert leader.core.on_isr_answer(proposal, ErrorCode.INVALID_UPDATE_VERSION) == []
    assert leader.core.high_watermark == 5
    leader.core.on_tick(LAG_MS + 1)
    assert leader.core.high_watermark == 5, "it may be in sync in the eyes of the controller, however late it is"
    assert leader.core.on_metadata(State((1, 2, 3), (1, 2), 8)) == [AdvanceHighWatermark(6)]


def test_a_refused_proposal_is_made_again_with_the_next_fetch() -> None:
    leader = Leader(isr=(1, 2))
    leader.fetch(3, 5)
    proposal = leader.core.proposal
    assert proposal is not None
    leader.core.on_isr_answer(proposal, ErrorCode.INELIGIBLE_REPLICA)
    assert leader.core.proposal is None
    assert len(leader.fetch(3, 5)) == 1


def test_who_is_refused_again_and_again_is_proposed_less_and_less() -> None:
    leader, proposals = Leader(isr=(1, 2)), 0
    leader.fetch(2, 5)
    for now_ms in range(0, 4_000, 5):
        leader.core.on_tick(now_ms)
        leader.fetch(3, 5)
        if leader.core.proposal is not None:
            proposals += 1
            leader.core.on_isr_answer(leader.core.proposal, ErrorCode.INELIGIBLE_REPLICA)
    assert 5 <= proposals <= 12
    leader.core.on_metadata(State((1, 2, 3), (1, 2), 8))
    assert leader.core.proposal is not None, "news is a reason to try again at once"


def test_min_insync_above_the_number_of_replicas_asks_for_all_of_them() -> None:
    leader = Leader(min_insync=5)
    assert leader.core.decide_produce(HEADER, -1, 0)
    leader.core.on_metadata(State((1, 2, 3), (1, 2), 8))
    with pytest.raises(BrokerError, match="3 are needed"):
        leader.core.decide_produce(HEADER, -1, 0)


def test_an_accepted_proposal_is_in_force_at_once_and_late_metadata_changes_nothing() -> None:
    leader = Leader(isr=(1, 2))
    leader.fetch(3, 5)
    proposal = leader.core.proposal
    assert proposal is not None
    leader.core.on_isr_answer(proposal, ErrorCode.NONE, (1, 2, 3), 8)
    assert (leader.core.isr, leader.core.proposal) == ((1, 2, 3), None)
    leader.core.on_metadata(State((1, 2, 3), (1, 2), 7))
    assert leader.core.isr == (1, 2, 3)


def test_metadata_that_came_first_makes_the_answer_void() -> None:
    leader = Leader(isr=(1, 2))
    leader.fetch(3, 5)
    proposal = leader.core.proposal
    assert proposal is not None
    leader.core.on_metadata(State((1, 2, 3), (1,), 9))
    assert leader.core.on_isr_answer(proposal, ErrorCode.NONE, (1, 2, 3), 8) == []
    assert leader.core.isr == (1,)


def test_a_follower_that_does_not_keep_up_leaves_after_the_lag_time() -> None:
    leader = Leader()
    leader.fetch(2, 5, at_ms=100)
    leader.fetch(3, 5, at_ms=100)
    leader.append()
    leader.fetch(2, 6, at_ms=200)
    assert leader.core.on_tick(LAG_MS + 100) == []
    assert leader.core.on_tick(LAG_MS + 101) == [ProposeIsr(IsrProposal(3, 7, (1, 2), (-1, 9)))]
    assert leader.core.maximal_isr == (1, 2, 3)
    assert leader.core.high_watermark == 5
    proposal = leader.core.proposal
    assert proposal is not None
    assert leader.core.on_isr_answer(proposal, ErrorCode.NONE, (1, 2), 8) == [AdvanceHighWatermark(6)]


def test_a_leader_that_resigns_proposes_who_else_is_in_sync() -> None:
    leader = Leader()
    leader.fetch(2, 5, at_ms=100)
    leader.fetch(3, 5, at_ms=100)
    assert leader.core.resign() == [ProposeIsr(IsrProposal(3, 7, (2, 3), (9, 9)))]
    assert set(leader.core.maximal_isr) == {1, 2, 3}, "until that is decided it waits for everybody"
    assert leader.core.resign() == [], "one proposal at a time"
    proposal = leader.core.proposal
    assert proposal is not None
    assert leader.core.on_isr_answer(proposal, ErrorCode.NEW_LEADER_ELECTED) == []
    assert leader.core.proposal is proposal, "metadata will tell"


def test_a_leader_that_is_alone_in_sync_does_not_resign() -> None:
    assert Leader(isr=(1,)).core.resign() == []


def test_the_time_in_which_a_leader_stood_still_is_no_lag() -> None:
    leader = Leader()
    leader.fetch(2, 5, at_ms=100)
    leader.fetch(3, 5, at_ms=100)
    leader.append()
    leader.fetch(2, 6, at_ms=200)
    assert leader.core.on_tick(3 * LAG_MS, stalled_ms=2 * LAG_MS) == []
    (left,) = leader.core.on_tick(3 * LAG_MS + 101)
    assert isinstance(left, ProposeIsr)
    assert left.proposal.isr == (1, 2)


def test_a_follower_that_has_what_there_was_at_its_last_fetch_keeps_up_under_load() -> None:
    leader = Leader()
    for step in range(20):
        leader.append()
        leader.fetch(2, 5 + step, at_ms=step * 500)
        leader.fetch(3, 5 + step, at_ms=step * 500)
        assert leader.core.on_tick(step * 500) == []


def test_who_was_admitted_has_a_whole_lag_time_to_reach_the_end() -> None:
    """Below min.insync the high watermark stands still, and what is not committed piles up behind it."""
    leader = Leader(isr=(1,))
    leader.append(20)
    now_ms = 10 * LAG_MS
    (proposed,) = (effect for effect in leader.fetch(2, 6, at_ms=now_ms) if isinstance(effect, ProposeIsr))
    leader.core.on_isr_answer(proposed.proposal, ErrorCode.NONE, (1, 2), 8)
    assert not any(isinstance(effect, ProposeIsr) for effect in leader.core.on_tick(now_ms + LAG_MS // 2))
    left = [effect for effect in leader.core.on_tick(now_ms + LAG_MS + 1) if isinstance(effect, ProposeIsr)]
    assert [effect.proposal.isr for effect in left] == [(1,)]


def test_a_quiet_follower_is_in_sync_however_long_nothing_comes() -> None:
    leader = Leader()
    leader.fetch(2, 5)
    leader.fetch(3, 5)
    assert leader.core.on_tick(100 * LAG_MS) == []
    leader.append()
    assert leader.core.on_tick(100 * LAG_MS + 10) == []


def test_who_could_not_join_with_its_only_fetch_joins_later() -> None:
    """An idle partition is fetched once; then its quiet fetches do not name it."""
    leader = Leader(isr=(1, 2))
    leader.fetch(2, 5)
    leader.fetch(3, 5)
    proposal = leader.core.proposal
    assert proposal is not None
    leader.core.on_isr_answer(proposal, ErrorCode.INELIGIBLE_REPLICA)
    (effect,) = leader.core.on_tick(10)
    assert isinstance(effect, ProposeIsr)
    assert effect.proposal.isr == (1, 2, 3)


def test_a_replica_about_to_join_is_waited_for() -> None:
    leader = Leader(isr=(1, 2))
    leader.append()
    leader.fetch(3, 6)  # proposed
    proposal = leader.core.proposal
    assert proposal is not None
    leader.core.on_isr_answer(proposal, ErrorCode.INELIGIBLE_REPLICA)
    leader.append()
    assert leader.fetch(2, 7) == [AdvanceHighWatermark(6)]
    assert leader.core.on_tick(LAG_MS + 1) == [AdvanceHighWatermark(7)]


def test_replicas_that_a_reassignment_adds_and_removes_come_and_go() -> None:
    leader = Leader()
    leader.core.on_metadata(State((1, 2, 3, 4), (1, 2, 3), 8))
    leader.fetch(2, 5)
    leader.fetch(3, 5)
    (effect,) = leader.fetch(4, 5)
    assert isinstance(effect, ProposeIsr)
    leader.core.on_metadata(State((1, 2, 4), (1, 2, 4), 9))
    assert leader.core.replica_end_offsets() == {1: 5, 2: 5, 4: 5}
    with pytest.raises(BrokerError):
        leader.fetch(3, 5)
