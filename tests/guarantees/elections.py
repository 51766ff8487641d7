"""Who may lead, and how many must have it: unclean elections and min.insync.replicas (D9, D10, D11)."""

from __future__ import annotations

import time

from broker_engine.simulator.history import History
from tests.chaos.asking import ask_election
from tests.guarantees.lab import Lab, Sender
from tests.guarantees.story import Counts, Expected, Story

BEFORE, ALONE = 100, 200
NOT_ENOUGH_REPLICAS = 19
UNAVAILABLE_S = 3.0


def unclean(*, is_allowed: bool) -> Story:
    def play(lab: Lab) -> Counts:
        """Two replicas; the third node only votes. The follower misses 200 records, then the leader dies."""
        history = History()
        setting = {"unclean_leader_election_enable": str(is_allowed).lower(), "min_insync_replicas": "1"}
        partition = lab.topic(replication_factor=2, **setting)
        sender = Sender(lab, history, partition, acks="all", **{"enable.idempotence": True})
        sender.send(BEFORE)
        sender.wait()
        leader, (follower,) = lab.roles(partition)
        lab.cluster.kill(follower)
        lab.wait_until(lambda: lab.isr(partition, leader) == [leader], "the leader is the only in-sync replica")
        sender.send(ALONE)
        sender.wait()
        lab.cluster.kill(leader)
        lab.cluster.launch([follower])
        if is_allowed:
            lab.wait_until(lambda: lab.cluster.leader_of(partition) == follower, "the stale replica leads")
        else:
            _check_nobody_leads(lab, partition)
        lab.cluster.launch([leader])
        lab.cluster.wait_until_whole([partition[0]])
        return Counts.of(lab.read_back(history, partition))

    return Story(
        key=f"unclean-{'on' if is_allowed else 'off'}",
        items="D10",
        event="leader SIGKILLed, only a replica that is not in sync is left",
        setting=f"unclean.leader.election.enable={str(is_allowed).lower()}, 2 replicas, min.insync 1",
        promise="goes on with what the stale replica has" if is_allowed else "waits for an in-sync replica",
        expected=Expected.LOSES if is_allowed else Expected.KEEPS,
        play=play,
    )


def _check_nobody_leads(lab: Lab, partition: tuple[str, int]) -> None:
    deadline = time.monotonic() + UNAVAILABLE_S
    while time.monotonic() < deadline:
        leader = lab.cluster.leader_of(partition)
        assert leader == -1, f"{leader} leads without being in sync"
        time.sleep(0.05)


def min_insync(count: int) -> Story:
    def play(lab: Lab) -> Counts:
        """The follower is away; then the leader's disk dies, and an operator lets the follower lead."""
        history = History()
        partition = lab.topic(replication_factor=2, min_insync_replicas=str(count))
        sender = Sender(
            lab, history, partition, acks="all", **{"enable.idempotence": True, "message.timeout.ms": 4_000}
        )
        sender.send(BEFORE)
        sender.wait()
        leader, (follower,) = lab.roles(partition)
        lab.cluster.kill(follower)
        lab.wait_until(lambda: lab.isr(partition, leader) == [leader], "the leader is the only in-sync replica")
        sender.send(ALONE)
        sender.wait()
        lab.cluster.kill(leader)
        lab.cluster.nodes[leader].wipe()
        lab.cluster.launch([follower])
        _let_lead(lab, partition, follower)
        lab.cluster.launch([leader])
        lab.cluster.wait_until_whole([partition[0]])
        return Counts.of(lab.read_back(history, partition))

    promises = {
        1: "acks=all is enough with the leader alone: one disk decides",
        2: "with one replica left records are refused (NOT_ENOUGH_REPLICAS)",
    }
    return Story(
        key=f"min-insync-{count}",
        items="C3, D11",
        event="follower away, then the leader's disk dies",
        setting=f"acks=all, 2 replicas, min.insync {count}",
        promise=promises[count],
        expected=Expected.LOSES if count == 1 else Expected.REFUSES,
        play=play,
    )


def _let_lead(lab: Lab, partition: tuple[str, int], node_id: int) -> None:
    """An election by hand: unclean where nobody in sync is left."""

    def is_leading() -> bool:
        if lab.cluster.leader_of(partition) == node_id:
            return True
        ask_election(lab.cluster.addresses, [partition], is_unclean=True)
        return False

    lab.wait_until(is_leading, f"{node_id} leads")


def only_in_sync_replicas_lead() -> Story:
    def play(lab: Lab) -> Counts:
        """One follower is stopped until it is out of the ISR; then the leader dies, and the stopped one is back."""
        history, partition = History(), lab.topic()
        sender = Sender(lab, history, partition, acks="all", **{"enable.idempotence": True})
        sender.send(BEFORE)
        sender.wait()
        leader, (good, stale) = lab.roles(partition)
        with lab.paused([stale]):
            lab.wait_until(lambda: lab.isr(partition, leader) == sorted([leader, good]), "one is out of sync")
            sender.send(ALONE)
            sender.wait()
            lab.cluster.kill(leader)
        lab.wait_until(lambda: lab.cluster.leader_of(partition) in (good, stale), "somebody leads")
        assert lab.cluster.leader_of(partition) == good, "a replica leads that was not in sync"
        lab.cluster.launch([leader])
        lab.cluster.wait_until_whole([partition[0]])
        return Counts.of(lab.read_back(history, partition))

    return Story(
        key="election-from-isr",
        items="D4, D9",
        event="leader SIGKILLed, one follower was out of sync",
        setting="acks=all, 3 replicas, min.insync 2",
        promise="only an in-sync replica becomes leader",
        expected=Expected.KEEPS,
        play=play,
    )


STORIES = (
    unclean(is_allowed=False),
    unclean(is_allowed=True),
    min_insync(1),
    min_insync(2),
    only_in_sync_replicas_lead(),
)
