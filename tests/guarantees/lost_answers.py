"""The ack is lost on its way: the broker has the record, the client does not know (C16, D14)."""

from __future__ import annotations

from broker_engine.simulator.history import History
from tests.guarantees.lab import Lab, Sender
from tests.guarantees.story import Counts, Expected, Story

RECORDS, LOST_ANSWERS = 300, 3


def answer_lost(*, is_idempotent: bool) -> Story:
    def play(lab: Lab) -> Counts:
        """The proxy lets produce requests through and resets the connection before the answer passes."""
        history, partition = History(), lab.topic()
        settings = {"enable.idempotence": is_idempotent, "max.in.flight.requests.per.connection": 1}
        sender = Sender(lab, history, partition, acks="all", **settings)
        sender.send(50)
        sender.wait()
        link = lab.cluster.links[0, lab.roles(partition)[0]]
        lost_before = link.lost_answer_count
        for _ in range(LOST_ANSWERS):
            link.lose_answers(1)
            sender.send((RECORDS - 50) // LOST_ANSWERS)
            sender.wait()
        assert link.lost_answer_count > lost_before, "no answer was lost"
        return Counts.of(lab.read_back(history, partition))

    return Story(
        key=f"answer-lost-{'with' if is_idempotent else 'without'}-idempotence",
        items="C16, D14, F1-F4",
        event="acks lost in transit, client sends again",
        setting=f"acks=all, enable.idempotence={str(is_idempotent).lower()}",
        promise="each record once, in order" if is_idempotent else "at least once: a retry may stand twice",
        expected=Expected.KEEPS if is_idempotent else Expected.DUPLICATES,
        play=play,
    )


STORIES = (answer_lost(is_idempotent=False), answer_lost(is_idempotent=True))
