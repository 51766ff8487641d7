"""Scenarios of replication: commit by majority, diverging logs, snapshots, observers."""

from __future__ import annotations

from uuid import UUID

import pytest

from broker_engine.errors import BrokerError, ErrorCode
from broker_engine.quorum import ready as r
from broker_engine.quorum.core import QuorumCore
from broker_engine.quorum.election_state import ElectionState, VoterKey
from broker_engine.quorum.log_index import NO_LOG, LogIndex, LogPosition
from broker_engine.quorum.messages import BeginEpochRequest, FetchAnswer, FetchRequest, VoteAnswer, VoteRequest
from broker_engine.quorum.ready import Entry
from broker_engine.quorum.roles import Role
from broker_engine.quorum.voter_set import Voter, VoterSet
from tests.broker_engine.quorum.bench import World
from tests.broker_engine.quorum.test_elections import core_of

A, B, C, D = (VoterKey(number, UUID(int=number * 11)) for number in (1, 2, 3, 4))
Starts = list[tuple[int, int]]


def core_with(starts: Starts, end: int, *, start: LogPosition = NO_LOG, epoch: int | None = None) -> QuorumCore:
    core = QuorumCore(
        me=A,
        state=ElectionState(epoch or starts[-1][0]),
        log=LogIndex(epoch_starts=starts, end_offset=end, start=start),
        voters=[(-1, VoterSet.of(map(Voter, (A, B, C))))],
        random_below=lambda _limit: 0,
    )
    core.step(r.Start(), 0)
    return core


def leader_with(starts: Starts, end: int, *, start: LogPosition = NO_LOG, epoch: int | None = None) -> QuorumCore:
    """Elected by B in the next epoch: its LeaderChange is at `end`."""
    core = core_with(starts, end, start=start, epoch=epoch)
    ready = core.step(r.Tick(), 10_000)
    for is_pre_vote in (True, False):
        request = next(m for _, m in ready.send if isinstance(m, VoteRequest) and m.voter == B)
        answer = VoteAnswer(
            request_id=request.request_id,
            epoch=request.epoch,
            leader_id=None,
            voter=B,
            is_granted=True,
            is_pre_vote=is_pre_vote,
        )
        ready = core.step(r.Answered(2, answer), 10_000)
    assert core.is_leader
    return core


def fetch(core: QuorumCore, replica: VoterKey, offset: int, last_epoch: int, epoch: int | None = None) -> FetchAnswer:
    request = FetchRequest(
        request_id=1,
        epoch=core.epoch if epoch is None else epoch,
        replica=replica,
        fetch_offset=offset,
        last_epoch=last_epoch,
    )
    answer = core.step(r.Asked(request), 10_000).answer
    assert isinstance(answer, FetchAnswer)
    return answer


def follower_with(starts: Starts, end: int, epoch: int) -> tuple[QuorumCore, FetchRequest]:
    core = core_with(starts, end)
    ready = core.step(r.Asked(BeginEpochRequest(request_id=1, epoch=epoch, leader=B, voter=A)), 0)
    ((_, request),) = ready.send
    assert isinstance(request, FetchRequest)
    return core, request


def reply(core: QuorumCore, request: FetchRequest, **fields: object) -> r.Ready:
    values = {"request_id": request.request_id, "epoch": core.epoch, "leader_id": 2, **fields}
    return core.step(r.Answered(2, FetchAnswer(**values)), 1)  # type: ignore[arg-type]


# --- commit


def test_committed_means_durable_on_a_majority() -> None:
    core = leader_with([(1, 0)], 5)
    assert fetch(core, B, 6, 2).high_watermark is None, "B has it, but the leader itself has not synced"
    core.step(r.Flushed(6), 10_000)
    assert core.high_watermark == 6
    core.step(r.Propose((b"\x01",)), 10_000)
    core.step(r.Flushed(7), 10_000)
    assert core.high_watermark == 6, "its own copy is not a majority"
    assert fetch(core, C, 7, 2).high_watermark == 7


def test_followers_may_commit_what_the_leader_has_not_synced() -> None:
    core = leader_with([(1, 0)], 5)
    fetch(core, B, 6, 2)
    assert fetch(core, C, 6, 2).high_watermark == 6


def test_an_observer_does_not_count() -> None:
    core = leader_with([(1, 0)], 5)
    core.step(r.Flushed(6), 10_000)
    assert fetch(core, D, 6, 2).high_watermark is None


def test_older_epochs_are_committed_only_by_an_entry_of_the_own() -> None:
    """Figure 8 of the Raft paper."""
    core = leader_with([(1, 0)], 5)
    core.step(r.Flushed(6), 10_000)
    assert fetch(core, B, 5, 1).high_watermark is None
    assert fetch(core, B, 6, 2).high_watermark == 6


def test_a_fetch_of_another_epoch_moves_nothing() -> None:
    core = leader_with([(1, 0)], 5)
    core.step(r.Flushed(6), 10_000)
    assert fetch(core, B, 6, 2, epoch=1).error is ErrorCode.FENCED_LEADER_EPOCH
    assert fetch(core, B, 6, 2, epoch=9).error is ErrorCode.UNKNOWN_LEADER_EPOCH
    assert core.high_watermark is None


def test_a_repeated_older_fetch_takes_nothing_back() -> None:
    core = leader_with([(1, 0)], 5)
    core.step(r.Flushed(6), 10_000)
    fetch(core, B, 6, 2)
    fetch(core, B, 5, 1)
    assert core.progress[B].durable_end_offset == 6


def test_a_high_watermark_that_a_former_leader_knew_stays_known() -> None:
    core, request = follower_with([(1, 0)], 5, 2)
    reply(core, request, high_watermark=5)
    core.step(r.Asked(BeginEpochRequest(request_id=9, epoch=3, leader=C, voter=A)), 2)
    assert core.high_watermark == 5


# --- following


def test_a_follower_fetches_again_only_when_all_is_on_disk() -> None:
    core, request = follower_with([(1, 0)], 5, 2)
    entry = Entry(2, 5, (b"\x01",))
    ready = reply(core, request, entries=(entry,), high_watermark=5)
    assert (ready.append, ready.send, ready.high_watermark) == ((entry,), (), 5)
    ((_, following),) = core.step(r.Flushed(6), 2).send
    assert isinstance(following, FetchRequest)
    assert (following.fetch_offset, following.last_epoch) == (6, 2)


def test_an_answer_to_an_earlier_fetch_is_dropped() -> None:
    core, request = follower_with([(1, 0)], 5, 2)
    reply(core, request)
    assert reply(core, request, entries=(Entry(2, 5, (b"\x01",)),)).append == ()


def test_a_failed_fetch_is_tried_again_after_a_pause() -> None:
    core, request = follower_with([(1, 0)], 5, 2)
    assert core.step(r.SendFailed(2, request), 1).send == ()
    deadline_ms = core.next_deadline_ms
    assert deadline_ms is not None
    assert 1 < deadline_ms < 500
    assert len(core.step(r.Tick(), deadline_ms).send) == 1


# --- diverging logs

# The leader wrote epochs 1 (0-4), 4 (4-6), 6 (6-10), as in figure 7 of the Raft paper; then its LeaderChange.
FIGURE_7: Starts = [(1, 0), (4, 4), (6, 6)]


@pytest.mark.parametrize(
    ("starts", "end", "cut"),
    [
        ([(1, 0), (4, 4), (6, 6)], 9, None),  # lags
        ([(1, 0), (4, 4)], 5, None),
        ([(1, 0), (4, 4), (6, 6)], 11, 10),  # too long
        ([(1, 0), (4, 4), (6, 6), (7, 10)], 12, 10),
        ([(1, 0), (4, 4)], 8, 6),
        ([(1, 0), (2, 4), (3, 7)], 11, 4),
    ],
)
def test_a_diverging_follower_is_cut_to_what_both_have(starts: Starts, end: int, cut: int | None) -> None:
    leader = leader_with(FIGURE_7, 10, epoch=7)
    follower, request = follower_with(starts, end, leader.epoch + 1)
    cuts = []
    while (answer := fetch(leader, B, request.fetch_offset, request.last_epoch)).diverging is not None:
        ready = reply(follower, request, diverging=answer.diverging)
        cuts.append(ready.truncate_to)
        ((_, request),) = ready.send  # type: ignore[assignment]
    assert (cuts[-1] if cuts else None) == cut
    assert answer.has_place_for_entries


def test_what_is_committed_is_never_cut() -> None:
    core, request = follower_with([(1, 0)], 5, 2)
    ready = reply(core, request, high_watermark=5)
    ((_, request),) = ready.send  # type: ignore[assignment]
    with pytest.raises(AssertionError, match="never cut"):
        reply(core, request, diverging=LogPosition(1, 4))


# --- snapshots


def test_a_follower_below_the_log_start_gets_the_snapshot() -> None:
    leader = leader_with([(3, 50)], 60, start=LogPosition(3, 50))
    answer = fetch(leader, B, 20, 1)
    assert (answer.snapshot, answer.has_place_for_entries) == (LogPosition(3, 50), False)
    assert fetch(leader, B, 50, 3).has_place_for_entries
    assert fetch(leader, B, 55, 2).snapshot == LogPosition(3, 50), "a log that parted before the start is replaced"


def test_a_loaded_snapshot_takes_the_place_of_the_log() -> None:
    core, request = follower_with([(1, 0)], 5, 4)
    ready = reply(core, request, snapshot=LogPosition(3, 50))
    assert (ready.fetch_snapshot, ready.send) == (LogPosition(3, 50), ())
    voters = VoterSet.of(map(Voter, (A, B)))
    ready = core.step(r.SnapshotLoaded(LogPosition(3, 50), voters), 2)
    ((_, request),) = ready.send  # type: ignore[assignment]
    assert (request.fetch_offset, request.last_epoch, ready.high_watermark) == (50, 3, 50)
    assert core.voters == voters


def test_a_snapshot_that_takes_longer_than_a_fetch_may_is_loaded_all_the_same() -> None:
    core, request = follower_with([(1, 0)], 5, 4)
    reply(core, request, snapshot=LogPosition(3, 50))
    for now_ms in range(0, 20_000, 1_000):
        core.step(r.SnapshotProgressed(LogPosition(3, 50)), now_ms)
        core.step(r.Tick(), now_ms)
    assert (core.role, core.loading) == (Role.FOLLOWER, LogPosition(3, 50))
    core.step(r.SnapshotLoaded(LogPosition(3, 50), VoterSet.of(map(Voter, (A, B)))), 20_900)
    core.step(r.Tick(), 21_100)
    assert core.role is Role.FOLLOWER


def test_a_leader_that_falls_silent_during_a_snapshot_is_given_up() -> None:
    core, request = follower_with([(1, 0)], 5, 4)
    reply(core, request, snapshot=LogPosition(3, 50))
    core.step(r.SnapshotProgressed(LogPosition(2, 40)), 1_500)  # of one that is not wanted any more
    core.step(r.Tick(), 2_100)
    assert (core.role, core.loading) == (Role.PROSPECTIVE, None)


def test_who_reads_a_snapshot_counts_as_heard_from() -> None:
    leader = leader_with([(3, 50)], 60, start=LogPosition(3, 50))
    for now_ms in range(10_000, 30_000, 1_000):
        leader.step(r.SnapshotServed(B), now_ms)
        leader.step(r.Tick(), now_ms)
    assert leader.is_leader
    leader.step(r.Tick(), 40_000)
    assert not leader.is_leader


def test_observers_that_are_gone_are_forgotten() -> None:
    leader = leader_with([(1, 0)], 5)
    fetch(leader, D, 5, 1)
    assert D in leader.progress
    request = FetchRequest(request_id=2, epoch=leader.epoch, replica=B, fetch_offset=5, last_epoch=1)
    leader.step(r.Asked(request), 10_000 + 300_001)
    assert D not in leader.progress


def test_a_log_that_a_snapshot_replaced_is_not_shortened_to_before_it() -> None:
    """The own snapshot was done a moment later than the leader's was installed. Found by simulation, seed 901715."""
    core, request = follower_with([(1, 0)], 60, 4)
    reply(core, request, snapshot=LogPosition(3, 90))
    core.step(r.SnapshotLoaded(LogPosition(3, 90), VoterSet.of(map(Voter, (A, B)))), 2)
    core.step(r.LogShortened(LogPosition(1, 50)), 3)
    assert core.log.start == LogPosition(3, 90)


def test_a_snapshot_that_cannot_be_had_is_asked_for_again() -> None:
    core, request = follower_with([(1, 0)], 5, 4)
    reply(core, request, snapshot=LogPosition(3, 50))
    assert core.step(r.SnapshotFailed(LogPosition(3, 50)), 2).send == ()
    assert core.next_deadline_ms is not None
    assert len(core.step(r.Tick(), core.next_deadline_ms).send) == 1


def test_a_lagging_follower_catches_up_by_snapshot_and_log() -> None:
    world = World(3, node_count=3, is_harsh=False)
    leader = world.settle()
    late = next(node for node in world.nodes.values() if node is not leader)
    world.kill(late)
    for _ in range(20):
        world.propose()
        world.run_until(world.now_ms + 50)
    leader.take_snapshot()
    assert core_of(leader).log.start_offset > late.disk.end_offset
    late.start()
    world.wait_until(lambda: core_of(late).high_watermark == core_of(leader).high_watermark, within_ms=3_000)
    assert late.disk.snapshot == leader.disk.snapshot


# --- observers


def test_an_observer_follows_and_never_stands() -> None:
    world = World(4, node_count=3, is_harsh=False)
    leader = world.settle()
    key = next(node.key for node in world.nodes.values() if node is not leader)
    leader.step(r.RemoveVoter(key))
    observer = next(node for node in world.nodes.values() if node.key == key)
    world.wait_until(lambda: not core_of(observer).may_stand, within_ms=1_000)
    for node in world.nodes.values():
        if node is not observer:
            world.kill(node)
    world.run_until(world.now_ms + 20_000)
    assert core_of(observer).role is Role.UNATTACHED


def test_a_blank_node_finds_the_leader_by_asking_around() -> None:
    world = World(9, node_count=3, is_harsh=False)
    leader = world.settle()
    blank = next(node for node in world.nodes.values() if node is not leader)
    world.kill(blank)
    world.wipe(blank)
    blank.start()
    world.wait_until(lambda: core_of(blank).high_watermark == core_of(leader).high_watermark, within_ms=1_000)
    assert not core_of(blank).is_voter


def test_only_a_leader_takes_proposals() -> None:
    with pytest.raises(BrokerError) as caught:
        follower_with([(1, 0)], 5, 2)[0].step(r.Propose((b"\x01",)), 1)
    assert caught.value.code is ErrorCode.NOT_CONTROLLER
