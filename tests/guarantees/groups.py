"""Members of a group that die, or share with a newcomer, between their work and their commit (E12, E13, E18, F2)."""

from __future__ import annotations

import multiprocessing
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.process import BaseProcess
from pathlib import Path
from tempfile import TemporaryDirectory

from broker_engine.simulator.history import History
from tests.guarantees.group_reader import Order, ReaderPlan, read
from tests.guarantees.lab import Lab, Sender
from tests.guarantees.story import Counts, Expected, Story

RECORDS, DIES_AT = 200, 90
JOIN_TIMEOUT_S = 90.0
EVENT = "member SIGKILLed between work and commit"
_context = multiprocessing.get_context("spawn")


def member_dies(key: str, order: Order, expected: Expected, texts: tuple[str, str], **settings: object) -> Story:
    """One member dies at the worst moment; another of its group takes over and reads to the end."""

    def play(lab: Lab) -> Counts:
        partition = lab.topic()
        sender = Sender(lab, History(), partition, acks="all", **{"enable.idempotence": True})
        sender.send(RECORDS)
        sender.wait()
        with TemporaryDirectory() as folder:
            for dies_at in (DIES_AT, None):
                plan = ReaderPlan(
                    lab.cluster.bootstrap, partition[0], 1, Path(folder), order, dies_at=dies_at, settings=settings
                )
                process = _start(plan)
                process.join(JOIN_TIMEOUT_S)
                assert process.exitcode == (0 if dies_at is None else -signal.SIGKILL), process.exitcode
            return counts_of(Path(folder) / "done", sender.acked)

    setting, promise = texts
    return Story(
        key=f"group-{key}",
        items="E12, F2" if order is Order.AUTO else "E13, F2",
        event=EVENT,
        setting=setting,
        promise=promise,
        expected=expected,
        play=play,
    )


def newcomer_joins(*, is_committed_on_revoke: bool) -> Story:
    """A member has done half of the work when another joins; it hands a partition over, and is killed later."""

    def play(lab: Lab) -> Counts:
        topic = lab.topic(partition_count=2)[0]
        acked = 0
        for number in range(2):
            sender = Sender(lab, History(), (topic, number), acks="all", prefix=f"{number}-")
            sender.send(RECORDS // 2)
            sender.wait()
            acked += sender.acked
        order = Order.ON_REVOKE if is_committed_on_revoke else Order.WORK_FIRST
        with TemporaryDirectory() as folder:
            plan = ReaderPlan(lab.cluster.bootstrap, topic, 2, Path(folder), order, stays_at=DIES_AT)
            newcomer = ReaderPlan(lab.cluster.bootstrap, topic, 2, Path(folder), order)
            with _running(plan) as first:
                lab.wait_until(lambda: _line_count(plan.done) >= DIES_AT, "the first member works")
                with _running(newcomer) as second:
                    assigned = Path(folder) / f"assigned-{second.pid}"
                    lab.wait_until(assigned.exists, "the newcomer has partitions")
                    first.kill()
                    second.join(JOIN_TIMEOUT_S)
                    assert second.exitcode == 0, second.exitcode
            return counts_of(plan.done, acked)

    setting = "also when partitions are revoked" if is_committed_on_revoke else "nothing when partitions are revoked"
    promises = {True: "the newcomer goes on behind what was done", False: "what was not committed is repeated"}
    return Story(
        key=f"group-rebalance-{'committed' if is_committed_on_revoke else 'uncommitted'}",
        items="E18, E20, F2",
        event="another member joins in the middle, then the first is SIGKILLed",
        setting=f"work, then commit; {setting}",
        promise=promises[is_committed_on_revoke],
        expected=Expected.KEEPS if is_committed_on_revoke else Expected.DUPLICATES,
        play=play,
    )


def counts_of(done: Path, acked: int) -> Counts:
    values = done.read_text().split()
    different = len(set(values))
    return Counts(RECORDS, acked, different, RECORDS - different, len(values) - different)


def _start(plan: ReaderPlan) -> BaseProcess:
    process = _context.Process(target=read, args=(plan,), daemon=True)
    process.start()
    return process


@contextmanager
def _running(plan: ReaderPlan) -> Iterator[BaseProcess]:
    process = _start(plan)
    try:
        yield process
    finally:
        process.kill()
        process.join()


def _line_count(path: Path) -> int:
    return len(path.read_text().split()) if path.exists() else 0


STORIES = (
    member_dies(
        "commit-first", Order.COMMIT_FIRST, Expected.LOSES, ("offset committed, then the work done", "at most once")
    ),
    member_dies(
        "work-first", Order.WORK_FIRST, Expected.DUPLICATES, ("work done, then the offset committed", "at least once")
    ),
    member_dies(
        "auto-commit-early",
        Order.AUTO,
        Expected.LOSES,
        ("auto commit, its interval ends before the work does", "what was handed over counts as done"),
        **{"enable.auto.commit": True, "auto.commit.interval.ms": 50},
    ),
    member_dies(
        "auto-commit-late",
        Order.AUTO,
        Expected.DUPLICATES,
        ("auto commit, the work ends before its interval does", "what was done since the last commit is repeated"),
        **{"enable.auto.commit": True, "auto.commit.interval.ms": 60_000},
    ),
    newcomer_joins(is_committed_on_revoke=False),
    newcomer_joins(is_committed_on_revoke=True),
)
