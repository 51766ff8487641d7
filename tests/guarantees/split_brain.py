"""A leader that is cut off and does not know it is deposed (D12): clients still reach it."""

from __future__ import annotations

from broker_engine.simulator.history import History
from broker_engine.simulator.history.rows import Partition
from tests.guarantees.lab import Lab, Sender
from tests.guarantees.story import Counts, Expected, Story

BEFORE, CUT_OFF, AFTER = 50, 100, 50


def cut_off(acks: str) -> Story:
    def play(lab: Lab) -> Counts:
        """The old leader takes records while nobody hears it; the others elect another; the cut heals."""
        history, partition = History(), lab.topic()
        sender = Sender(lab, history, partition, acks=acks, **{"enable.idempotence": acks == "all"})
        sender.send(BEFORE)
        sender.wait()
        leader, others = lab.roles(partition)
        for other in others:
            lab.cluster.cut(leader, other)
            lab.cluster.cut(other, leader)
        sender.send(CUT_OFF)
        if acks != "all":
            sender.wait(acked=BEFORE + CUT_OFF)
        lab.wait_until(lambda: _leader_known_to(lab, others[0], partition) in others, "the others elect a leader")
        lab.cluster.heal()
        sender.send(AFTER)
        sender.wait()
        lab.cluster.wait_until_whole([partition[0]])
        return Counts.of(lab.read_back(history, partition))

    promise = (
        "a deposed leader acknowledges nothing" if acks == "all" else "what only the deposed leader took is cut off"
    )
    return Story(
        key=f"split-brain-acks-{acks}",
        items="D8, D12",
        event="leader cut off from the others, not from clients",
        setting=f"acks={acks}, 3 replicas",
        promise=promise,
        expected=Expected.KEEPS if acks == "all" else Expected.LOSES,
        play=play,
    )


def _leader_known_to(lab: Lab, node_id: int, partition: Partition) -> int:
    known = lab.cluster.known_to(node_id, partition)
    return -1 if known is None else known.leader


STORIES = (cut_off("1"), cut_off("all"))
