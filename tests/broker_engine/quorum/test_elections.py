"""Scenarios of elections, each as one could tell it: pre-vote, check-quorum, fast fail-over, resignation."""

from __future__ import annotations

from uuid import UUID

import pytest

from broker_engine.errors import ErrorCode
from broker_engine.quorum import ready as r
from broker_engine.quorum.core import QuorumCore
from broker_engine.quorum.election_state import ElectionState, VoterKey
from broker_engine.quorum.log_index import LogIndex, LogPosition
from broker_engine.quorum.messages import BeginEpochRequest, EndEpochRequest, FetchAnswer, VoteAnswer, VoteRequest
from broker_engine.quorum.roles import Role
from broker_engine.quorum.voter_set import Voter, VoterSet
from tests.broker_engine.quorum.bench import World
from tests.broker_engine.quorum.bench_node import TIMING, Node

A, B, C = (VoterKey(number, UUID(int=number * 11)) for number in (1, 2, 3))


def voter(me: VoterKey = A, state: ElectionState | None = None, *, end: int = 0, last_epoch: int = 0) -> QuorumCore:
    starts = [(last_epoch, 0)] if last_epoch else []
    core = QuorumCore(
        me=me,
        state=state or ElectionState(last_epoch),
        log=LogIndex(epoch_starts=starts, end_offset=end),
        voters=[(-1, VoterSet.of(map(Voter, (A, B, C))))],
        random_below=lambda _limit: 0,
    )
    core.step(r.Start(), 0)
    return core


def ask_vote(
    core: QuorumCore, candidate: VoterKey, epoch: int, last: tuple[int, int], *, pre: bool = False, now_ms: int = 0
) -> tuple[VoteAnswer, r.Ready]:
    request = VoteRequest(
        request_id=1, epoch=epoch, candidate=candidate, voter=core.me, last=LogPosition(*last), is_pre_vote=pre
    )
    ready = core.step(r.Asked(request), now_ms)
    assert isinstance(ready.answer, VoteAnswer)
    return ready.answer, ready


def follow(core: QuorumCore, leader: VoterKey, epoch: int) -> r.Ready:
    request = BeginEpochRequest(request_id=1, epoch=epoch, leader=leader, voter=core.me)
    return core.step(r.Asked(request), 0)


def hear_from_leader(core: QuorumCore, ready: r.Ready, leader: VoterKey, now_ms: int = 0) -> r.Ready:
    ((_, request),) = ready.send
    answer = FetchAnswer(request_id=request.request_id, epoch=core.epoch, leader_id=leader.node_id, high_watermark=None)
    return core.step(r.Answered(leader.node_id, answer), now_ms)


def epochs(world: World) -> list[int]:
    return [node.core.epoch for node in world.nodes.values() if node.core is not None]


def core_of(node: Node) -> QuorumCore:
    assert node.core is not None
    return node.core


# --- votes


def test_a_vote_is_given_once_an_epoch_and_is_on_disk_with_the_answer() -> None:
    core = voter()
    answer, ready = ask_vote(core, B, 1, (0, 0))
    assert answer.is_granted
    assert ready.persist_state == ElectionState(1, voted_for=B)
    assert not ask_vote(core, C, 1, (0, 0))[0].is_granted
    assert ask_vote(core, B, 1, (0, 0))[0].is_granted, "the same question has the same answer"


def test_a_vote_survives_a_restart() -> None:
    core = voter(state=ElectionState(4, voted_for=B))
    assert not ask_vote(core, C, 4, (9, 9))[0].is_granted
    assert ask_vote(core, B, 4, (9, 9))[0].is_granted


def test_a_shorter_or_older_log_gets_no_vote() -> None:
    core = voter(end=10, last_epoch=3)
    assert not ask_vote(core, B, 4, (3, 9))[0].is_granted
    assert not ask_vote(core, B, 5, (2, 99))[0].is_granted
    assert ask_vote(core, B, 6, (3, 10))[0].is_granted
    assert ask_vote(core, C, 7, (4, 1))[0].is_granted


def test_a_past_epoch_is_refused_with_the_present_one() -> None:
    answer, ready = ask_vote(voter(state=ElectionState(7)), B, 6, (9, 9))
    assert (answer.is_granted, answer.error, answer.epoch) == (False, ErrorCode.FENCED_LEADER_EPOCH, 7)
    assert ready.persist_state is None


def test_a_wiped_directory_cannot_vote_as_its_old_self() -> None:
    core = voter(VoterKey(1, UUID(int=999)))
    request = VoteRequest(request_id=1, epoch=1, candidate=B, voter=A, last=LogPosition(0, 0), is_pre_vote=False)
    ready = core.step(r.Asked(request), 0)
    assert isinstance(ready.answer, VoteAnswer)
    assert (ready.answer.is_granted, ready.answer.error) == (False, ErrorCode.INVALID_VOTER_KEY)
    assert core.epoch == 0


# --- pre-votes


def test_a_pre_vote_raises_no_epoch_and_uses_up_no_vote() -> None:
    core = voter(state=ElectionState(5))
    answer, ready = ask_vote(core, B, 5, (0, 0), pre=True)
    assert (answer.is_granted, ready.persist_state, core.epoch, core.voted_for) == (True, None, 5, None)
    assert ask_vote(core, C, 6, (0, 0))[0].is_granted


def test_who_hears_from_a_leader_grants_no_pre_vote_until_the_leader_is_silent() -> None:
    core = voter()
    hear_from_leader(core, follow(core, B, 2), B)
    answer, _ = ask_vote(core, C, 2, (9, 9), pre=True, now_ms=100)
    assert (answer.is_granted, answer.leader_id) == (False, 2)
    answer, _ = ask_vote(core, C, 2, (9, 9), pre=True, now_ms=TIMING.fetch_timeout_ms)
    assert (answer.is_granted, answer.leader_id) == (True, None)


def test_a_silent_leader_is_replaced_by_pre_vote_first() -> None:
    core = voter()
    hear_from_leader(core, follow(core, B, 2), B)
    ready = core.step(r.Tick(), TIMING.fetch_timeout_ms)
    assert (core.role, core.epoch, ready.persist_state) == (Role.PROSPECTIVE, 2, None)
    requests = [(node_id, request.is_pre_vote) for node_id, request in ready.send if isinstance(request, VoteRequest)]
    assert requests == [(2, True), (3, True)]


def test_a_node_that_was_cut_off_disturbs_nobody_when_it_comes_back() -> None:
    world = World(5, node_count=3, is_harsh=False)
    leader = world.settle()
    cut = next(node for node in world.nodes.values() if node is not leader)
    epoch = core_of(leader).epoch
    world.isolate(cut)
    world.run_until(world.now_ms + 20_000)
    assert core_of(cut).epoch == epoch, "it asked in vain, and raised nothing"
    world.cut_links.clear()
    world.run_until(world.now_ms + 3_000)
    assert (epochs(world), world.leaders(), core_of(cut).leader_id) == ([epoch] * 3, [leader], leader.id)


def test_a_follower_that_only_loses_sight_of_the_leader_starts_no_election() -> None:
    world = World(6, node_count=3, is_harsh=False)
    leader = world.settle()
    cut = next(node for node in world.nodes.values() if node is not leader)
    epoch = core_of(leader).epoch
    world.cut_links |= {(cut.id, leader.id): None, (leader.id, cut.id): None}
    world.run_until(world.now_ms + 20_000)
    assert (epochs(world), world.leaders()) == ([epoch] * 3, [leader])


# --- check-quorum


def test_a_leader_without_a_majority_resigns_after_one_and_a_half_fetch_timeouts() -> None:
    world = World(7, node_count=3, is_harsh=False)
    leader = world.settle()
    world.isolate(leader)
    started_ms = world.now_ms
    world.wait_until(lambda: not core_of(leader).is_leader, within_ms=2 * TIMING.check_quorum_ms)
    assert world.now_ms - started_ms >= TIMING.check_quorum_ms - 500
    world.wait_until(lambda: len(world.leaders()) == 1, within_ms=6_000)


def test_a_leader_with_one_of_two_followers_stays() -> None:
    world = World(8, node_count=3, is_harsh=False)
    leader = world.settle()
    world.kill(next(node for node in world.nodes.values() if node is not leader))
    world.run_until(world.now_ms + 20_000)
    assert world.leaders() == [leader]


# --- fail-over


def test_a_killed_leader_is_replaced_within_half_a_second() -> None:
    for seed in range(20):
        world = World(seed, node_count=3, is_harsh=False)
        world.kill(world.settle())
        world.wait_until(lambda world=world: bool(world.leaders()), within_ms=800)  # type: ignore[misc]


def test_a_refused_redial_ends_following_and_grants_pre_votes() -> None:
    core = voter()
    hear_from_leader(core, follow(core, B, 2), B)
    core.step(r.PeerLost(2, is_refused=False), 0)
    assert core.role is Role.FOLLOWER, "silence alone is no proof"
    core.step(r.PeerLost(3, is_refused=True), 0)
    assert core.role is Role.FOLLOWER, "nor is another node's end"
    core.step(r.PeerLost(2, is_refused=True), 0)
    assert (core.role, core.leader_id) == (Role.UNATTACHED, None)
    assert core.next_deadline_ms is not None
    assert core.next_deadline_ms <= TIMING.lost_leader_jitter_ms
    assert ask_vote(core, C, 2, (0, 0), pre=True)[0].is_granted


def test_hearsay_about_a_leader_that_is_gone_is_not_believed() -> None:
    core = voter()
    hear_from_leader(core, follow(core, B, 2), B)
    core.step(r.PeerLost(2, is_refused=True), 0)
    answer = FetchAnswer(request_id=99, epoch=2, leader_id=2, error=ErrorCode.NOT_LEADER_OR_FOLLOWER)
    core.step(r.Answered(3, answer), 1)
    assert core.role is Role.UNATTACHED
    follow(core, B, 2)
    assert (core.role, core.leader_id) == (Role.FOLLOWER, 2), "but its own word is"


def test_a_leader_that_was_started_anew_is_not_waited_for() -> None:
    core = voter()
    ready = follow(core, B, 2)
    ((_, request),) = ready.send
    answer = FetchAnswer(request_id=request.request_id, epoch=2, leader_id=None, error=ErrorCode.NOT_LEADER_OR_FOLLOWER)
    core.step(r.Answered(2, answer), 1)
    assert core.role is Role.UNATTACHED


def test_a_split_vote_is_settled_soon_although_the_third_voter_is_gone() -> None:
    for seed in range(10):
        world = World(seed, node_count=3, is_harsh=False)
        world.kill(world.settle(), is_noticed=False)
        for node in world.nodes.values():
            if node.core is not None:
                node.core._stand()
                node._carry_out(node.core._finish())
                node._plan_tick()
        world.wait_until(lambda world=world: bool(world.leaders()), within_ms=2_500)  # type: ignore[misc]


def test_an_unreachable_majority_never_raises_the_epoch() -> None:
    world = World(11, node_count=3, is_harsh=False)
    leader = world.settle()
    epoch = core_of(leader).epoch
    others = [node for node in world.nodes.values() if node is not leader]
    world.kill(leader)
    world.kill(others[0])
    world.run_until(world.now_ms + 20_000)
    assert core_of(others[1]).epoch == epoch


# --- resignation


def test_a_leader_that_resigns_is_followed_at_once_by_the_longest_log() -> None:
    world = World(12, node_count=3, is_harsh=False)
    leader = world.settle()
    epoch = core_of(leader).epoch
    leader.step(r.Resign())
    world.wait_until(lambda: bool(world.leaders()), within_ms=100)
    (successor,) = world.leaders()
    assert successor is not leader
    assert core_of(successor).epoch == epoch + 1


def test_only_the_first_successor_stands_at_once() -> None:
    for me, role in ((A, Role.PROSPECTIVE), (B, Role.UNATTACHED)):
        core = voter(me)
        follow(core, C, 2)
        core.step(r.Asked(EndEpochRequest(request_id=1, epoch=2, leader=C, successors=(A, B))), 0)
        assert core.role is role


def test_an_older_leaders_farewell_is_ignored() -> None:
    core = voter()
    follow(core, B, 5)
    core.step(r.Asked(EndEpochRequest(request_id=1, epoch=4, leader=C, successors=(A,))), 0)
    assert (core.role, core.leader_id) == (Role.FOLLOWER, 2)


# --- storms


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("is_one_way", [False, True])
def test_flapping_links_cause_no_storm_of_elections(seed: int, is_one_way: bool) -> None:
    """At most one new epoch in two seconds, whatever links come and go every three."""
    world = World(seed, node_count=5, is_harsh=False)
    world.settle()
    first_epoch, began_ms = max(epochs(world)), world.now_ms
    for _ in range(10):
        one, other = world.dice.sample(sorted(world.nodes), 2)
        world.cut_links[one, other] = None
        if not is_one_way:
            world.isolate(world.nodes[one])
        world.run_until(world.now_ms + 3_000)
        world.cut_links.clear()
        world.run_until(world.now_ms + 3_000)
    assert max(epochs(world)) - first_epoch <= (world.now_ms - began_ms) / 2_000
    world.settle()
