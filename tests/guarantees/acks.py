"""acks 0, 1 and all, and the leader dies before its followers copied (C1, C2, C3, D8, D9, D14)."""

from __future__ import annotations

from broker_engine.simulator.history import History
from tests.guarantees.lab import Lab, Sender
from tests.guarantees.story import Counts, Expected, Story

COPIED, NOT_COPIED = 100, 200


def leader_dies(acks: str, *, is_idempotent: bool) -> Story:
    def play(lab: Lab) -> Counts:
        """The followers are stopped, so that what the leader takes is on the leader alone when it is killed."""
        history, partition = History(), lab.topic()
        sender = Sender(lab, history, partition, acks=acks, **{"enable.idempotence": is_idempotent})
        sender.send(COPIED)
        sender.wait()
        leader, followers = lab.roles(partition)
        with lab.paused(followers):
            sender.send(NOT_COPIED)
            if acks != "all":
                sender.wait(acked=COPIED + NOT_COPIED)
            lab.cluster.kill(leader)
        sender.wait()
        lab.cluster.launch([leader])
        lab.cluster.wait_until_whole([partition[0]])
        return Counts.of(lab.read_back(history, partition))

    idempotence = " with idempotence" if is_idempotent else ""
    promises = {
        "0": "nothing: the client does not wait (at most once)",
        "1": "the leader wrote it; gone if the leader dies before a follower copied it",
        "all": "every in-sync replica has it; on the leader's death the client tries again",
    }
    return Story(
        key=f"acks-{acks}-leader-dies",
        items={"0": "C1, D14", "1": "C2, D8, D14", "all": "C3, D9"}[acks],
        event="leader SIGKILLed, followers had not copied",
        setting=f"acks={acks}{idempotence}, 3 replicas",
        promise=promises[acks],
        expected=Expected.KEEPS if acks == "all" else Expected.LOSES,
        play=play,
    )


def disk_of_the_leader_dies() -> Story:
    def play(lab: Lab) -> Counts:
        history, partition = History(), lab.topic()
        sender = Sender(lab, history, partition, acks="all", **{"enable.idempotence": True})
        sender.send(COPIED + NOT_COPIED)
        sender.wait(acked=COPIED)
        leader, _ = lab.roles(partition)
        lab.cluster.kill(leader)
        lab.cluster.nodes[leader].wipe()
        sender.wait()
        lab.cluster.launch([leader])
        lab.cluster.wait_until_whole([partition[0]])
        return Counts.of(lab.read_back(history, partition))

    return Story(
        key="acks-all-disk-dies",
        items="C3, D13",
        event="leader SIGKILLed, its directory wiped",
        setting="acks=all with idempotence, 3 replicas, min.insync 2",
        promise="survives the loss of any one broker with its disk",
        expected=Expected.KEEPS,
        play=play,
    )


STORIES = (
    leader_dies("0", is_idempotent=False),
    leader_dies("1", is_idempotent=False),
    leader_dies("all", is_idempotent=True),
    disk_of_the_leader_dies(),
)
