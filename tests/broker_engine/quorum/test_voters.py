"""Scenarios of changing voters: one at a time, in force when written, the leader itself among them."""

from __future__ import annotations

from uuid import UUID

import pytest

from broker_engine.errors import BrokerError, ErrorCode
from broker_engine.quorum import ready as r
from broker_engine.quorum.election_state import VoterKey
from broker_engine.quorum.following import voter_sets_in
from broker_engine.quorum.roles import Role
from broker_engine.quorum.voter_set import (
    Voter,
    VoterEndpoint,
    VoterHistory,
    VoterSet,
    decode_voters,
    encode_voters,
)
from tests.broker_engine.quorum.bench import World
from tests.broker_engine.quorum.bench_node import Node
from tests.broker_engine.quorum.test_elections import core_of
from tests.broker_engine.quorum.test_replication import A, B, C, D, fetch, leader_with


def others(world: World, leader: Node) -> list[Node]:
    return [node for node in world.nodes.values() if node is not leader]


def code_of(node: Node, event: r.Event) -> ErrorCode:
    with pytest.raises(BrokerError) as caught:
        core_of(node).step(event, node.world.now_ms)
    return caught.value.code


def as_observer(world: World, leader: Node, node: Node) -> None:
    leader.step(r.RemoveVoter(node.key))
    world.wait_until(lambda: not core_of(node).may_stand, within_ms=1_000)


def test_a_voter_set_survives_its_record() -> None:
    voters = VoterSet.of([Voter(B, (VoterEndpoint("controller", "10.0.0.2", 9093),)), Voter(A)])
    assert decode_voters(encode_voters(voters)) == voters
    assert decode_voters(b"\x01\x00") is None


def test_a_truncated_change_brings_the_voters_before_it_back() -> None:
    history = VoterHistory([(2, VoterSet.of([Voter(A)]))])
    history.append(7, VoterSet.of([Voter(A), Voter(B)]))
    history.truncate_to(7)
    assert history.latest.keys == (A,)


def test_nothing_changes_before_the_leader_committed_in_its_epoch() -> None:
    core = leader_with([(1, 0)], 5)
    with pytest.raises(BrokerError) as caught:
        core.step(r.RemoveVoter(C), 10_000)
    assert caught.value.code is ErrorCode.REQUEST_TIMED_OUT
    core.step(r.Flushed(6), 10_000)
    fetch(core, B, 6, 2)
    assert voter_sets_in(core.step(r.RemoveVoter(C), 10_000).append[0])[0][1].keys == (A, B)


def test_one_change_at_a_time() -> None:
    core = leader_with([(1, 0)], 5)
    core.step(r.Flushed(6), 10_000)
    fetch(core, B, 6, 2)
    core.step(r.RemoveVoter(C), 10_000)
    with pytest.raises(BrokerError) as caught:
        core.step(r.RemoveVoter(B), 10_000)
    assert caught.value.code is ErrorCode.REQUEST_TIMED_OUT
    core.step(r.Flushed(7), 10_000)
    fetch(core, B, 7, 2)
    core.step(r.RemoveVoter(B), 10_000)
    assert core.voters.keys == (A,)


def test_a_new_voter_must_follow_closely_and_be_new() -> None:
    core = leader_with([(1, 0)], 5)
    core.step(r.Flushed(6), 10_000)
    fetch(core, B, 6, 2)
    fetch(core, D, 3, 1)
    for voter, code in (
        (Voter(D), ErrorCode.REQUEST_TIMED_OUT),
        (Voter(VoterKey(2, UUID(int=5))), ErrorCode.DUPLICATE_VOTER),
    ):
        with pytest.raises(BrokerError) as caught:
            core.step(r.AddVoter(voter), 10_000)
        assert caught.value.code is code
    fetch(core, D, 6, 2)
    core.step(r.AddVoter(Voter(D)), 10_000)
    assert core.voters.keys == (A, B, C, D)


def test_the_last_voter_and_a_stranger_cannot_be_removed() -> None:
    world = World(1, node_count=1, is_harsh=False)
    leader = world.settle()
    assert code_of(leader, r.RemoveVoter(leader.key)) is ErrorCode.INVALID_REQUEST
    assert code_of(leader, r.RemoveVoter(VoterKey(1, UUID(int=77)))) is ErrorCode.VOTER_NOT_FOUND


def test_one_voter_grows_to_three_and_survives_the_first() -> None:
    world = World(2, node_count=3, is_harsh=False)
    leader = world.settle()
    for node in others(world, leader):
        as_observer(world, leader, node)
    assert core_of(leader).is_only_voter
    for node in others(world, leader):
        world.wait_until(lambda node=node: core_of(leader).is_caught_up(node.key), within_ms=2_000)  # type: ignore[misc]
        leader.step(r.AddVoter(Voter(node.key)))
        world.wait_until(lambda node=node: core_of(node).is_voter, within_ms=2_000)  # type: ignore[misc]
        world.run_until(world.now_ms + 200)
    assert len(core_of(leader).voters) == 3
    world.kill(leader)
    world.wait_until(lambda: bool(world.leaders()), within_ms=1_000)


def test_a_leader_that_removes_itself_leads_until_that_is_committed() -> None:
    world = World(3, node_count=3, is_harsh=False)
    leader = world.settle()
    leader.step(r.RemoveVoter(leader.key))
    assert core_of(leader).is_leader
    world.wait_until(lambda: not core_of(leader).is_leader, within_ms=1_000)
    world.wait_until(lambda: bool(world.leaders()), within_ms=1_000)
    (successor,) = world.leaders()
    assert successor is not leader
    world.wait_until(lambda: core_of(leader).role is Role.FOLLOWER, within_ms=3_000)
    world.run_until(world.now_ms + 10_000)
    assert core_of(leader).role is Role.FOLLOWER, "as an observer, and so it stays"


@pytest.mark.parametrize("seed", range(8))
def test_a_leader_that_dies_while_it_removes_itself_leaves_no_deadlock(seed: int) -> None:
    world = World(seed, node_count=2, is_harsh=False)
    leader = world.settle()
    leader.step(r.RemoveVoter(leader.key))
    world.run_until(world.now_ms + seed)
    world.kill(leader)
    leader.start()
    world.wait_until(lambda: bool(world.leaders()), within_ms=10_000)


@pytest.mark.parametrize("seed", range(8))
def test_a_leader_that_dies_during_a_change_leaves_one_of_the_two_sets(seed: int) -> None:
    world = World(seed, node_count=4, is_harsh=False)
    leader = world.settle()
    removed = others(world, leader)[0]
    leader.step(r.RemoveVoter(removed.key))
    world.run_until(world.now_ms + seed * 3)
    world.kill(leader)
    world.wait_until(lambda: bool(world.leaders()), within_ms=6_000)
    leader.start()
    world.check_recovered()
    sets = {core_of(node).voters for node in world.nodes.values()}
    assert len(sets) == 1


def test_a_removed_voter_that_does_not_know_it_disturbs_nobody() -> None:
    world = World(5, node_count=3, is_harsh=False)
    leader = world.settle()
    removed = others(world, leader)[0]
    world.isolate(removed)
    leader.step(r.RemoveVoter(removed.key))
    world.run_until(world.now_ms + 5_000)
    epoch = core_of(leader).epoch
    world.cut_links.clear()
    world.run_until(world.now_ms + 5_000)
    assert (core_of(leader).epoch, core_of(leader).is_leader, core_of(removed).is_voter) == (epoch, True, False)


def test_a_wiped_voter_comes_back_as_another() -> None:
    world = World(6, node_count=3, is_harsh=False)
    leader = world.settle()
    wiped = others(world, leader)[0]
    old_key = wiped.key
    world.kill(wiped)
    world.wipe(wiped)
    wiped.start()
    world.wait_until(lambda: core_of(leader).is_caught_up(wiped.key), within_ms=3_000)
    assert code_of(leader, r.AddVoter(Voter(wiped.key))) is ErrorCode.DUPLICATE_VOTER
    leader.step(r.RemoveVoter(old_key))
    world.run_until(world.now_ms + 500)
    leader.step(r.AddVoter(Voter(wiped.key)))
    world.wait_until(lambda: core_of(wiped).is_voter, within_ms=2_000)
