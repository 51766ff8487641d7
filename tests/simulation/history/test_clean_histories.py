"""Histories that a correct cluster can show, also an unlucky one, pass; and what is allowed is counted all the same."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from broker_engine.simulator.history import Allowed, History, Kind, Poll, Send, check
from broker_engine.simulator.history.rows import Partition
from tests.simulation.history.scripts import found_in, history_of, report_of

CLEAN = {
    "many sends open at once, answered in any order": """
        p1 send 1
        p1 send 2
        p2 send 3
        p1 ok 1@0
        p2 ok 3@1
        p1 ok 2@2
        c1 poll 0:1 1:3
        c1 poll 2:2
    """,
    "an unsure send happened": "p1 send 1 \n p1 info 1 \n c1 poll 0:1",
    "an unsure send did not happen": "p1 send 1 \n p1 info 1 \n p1 send 2 \n p1 ok 2@0 \n c1 poll 0:2",
    "an open send was read": "p1 send 1 \n c1 poll 0:1",
    "a failed send was never seen": "p1 send 1 \n p1 fail 1 \n p1 send 2 \n p1 ok 2@0 \n c1 poll 0:2",
    "offsets of markers and aborted data are nobody's": """
        t1 commit send 1@0 send 2@1
        t2 abort send 3@3
        p1 send 4
        p1 ok 4@5
        c1 poll 0:1 1:2
        c1 poll 5:4
    """,
    "a reader that was assigned anew starts where it likes": """
        p1 send 1 2 3
        p1 ok 1@0 2@1 3@2
        c1 poll 0:1 1:2 2:3
        c1 assign
        c1 poll 0:1
        c1 assign
        c1 poll 2:3
    """,
    "a transaction reads another's committed write": """
        t1 commit send 1@0
        t2 commit poll 0:1 send b/2@0
        c1 poll b/0:2
    """,
    "two transactions at once write two partitions in different order": """
        t1 commit send 1@0 send b/2@1
        t2 commit send 3@1 send b/4@0
        c1 poll 0:1 1:3 b/0:4 b/1:2
    """,
    "an end that was asked for before the record was known": """
        p1 send 1
        c1 end?
        p1 ok 1@0
        c1 end 0
        c2 poll 0:1
    """,
}


@pytest.mark.parametrize("script", CLEAN.values(), ids=CLEAN.keys())
def test_a_clean_history_passes(script: str) -> None:
    assert found_in(script) == []


def test_what_acks_1_loses_is_counted_and_allowed() -> None:
    script = "p1 send 1 \n p1 ok 1@0 \n p2 send 2 \n p2 ok 2@0 \n c1 poll 0:2"
    assert found_in(script) != []
    report = report_of(script, Allowed(may_lose=frozenset({"p1"})))
    assert report.is_ok
    assert report.lost == 1
    assert [anomaly.kind for anomaly in report.allowed] == [Kind.LOST_WRITE]


def test_the_loss_of_another_process_is_not_allowed_with_it() -> None:
    script = "p2 send 1 \n p2 ok 1@0 \n p1 send 2 \n p1 ok 2@1 \n c1 poll 1:2"
    assert found_in(script, Allowed(may_lose=frozenset({"p1"}))) == [Kind.LOST_WRITE]


def test_what_a_retry_without_idempotence_repeats_is_counted_and_allowed() -> None:
    script = "p1 send 1 2 \n p1 ok 2@1 1@2 \n c1 poll 0:1 1:2 2:1"
    report = report_of(script, Allowed(may_duplicate=frozenset({"p1"})))
    assert report.is_ok
    assert report.duplicated == 1


def test_two_readers_that_disagree_are_never_allowed() -> None:
    script = "p1 send 1 2 \n p1 ok 1@0 2@0 \n c1 poll 0:1 \n c2 poll 0:2"
    allowed = Allowed(may_lose=frozenset({"p1"}), may_duplicate=frozenset({"p1"}))
    assert found_in(script, allowed) == [Kind.INCONSISTENT_OFFSETS]


def test_a_topic_that_may_lose_excuses_no_other() -> None:
    script = "p1 send 1 2 \n p1 ok 1@0 2@1 \n p1 send b/3 b/4 \n p1 ok b/3@0 b/4@1 \n c1 poll 1:2 \n c1 poll b/1:4"
    report = report_of(script, Allowed(shaken_topics=frozenset({"b"})))
    assert [anomaly.partition for anomaly in report.violations] == [("a", 0)]
    assert [anomaly.partition for anomaly in report.allowed] == [("b", 0)]


def test_records_below_the_log_start_are_not_missed() -> None:
    script = "p1 send 1 2 \n p1 ok 1@0 2@1 \n c1 poll 1:2"
    assert found_in(script) == [Kind.LOST_WRITE]
    assert found_in(script, Allowed(first_offsets={("a", 0): 1})) == []


def test_a_history_survives_its_file(tmp_path: Path) -> None:
    history = history_of("p1 send 1 \n p1 ok 1@0 \n c1 poll 0:1 \n c1 end? \n c1 end 1 \n t1 abort send 2")
    history.save(tmp_path / "history.jsonl")
    assert History.load(tmp_path / "history.jsonl").rows == history.rows


def test_rows_of_several_processes_are_put_in_order_of_time() -> None:
    history, other = History(), History()
    history.ok("c1", "poll", [Poll(("a", 0), ((0, 1),))], time=5)
    other.invoke("p1", "send", [Send(("a", 0), 1)], time=1)
    history.extend(other.rows)
    assert [row.process for row in history.rows] == ["p1", "c1"]
    assert check(history).is_ok


@pytest.mark.parametrize("seed", range(20))
def test_a_random_correct_log_passes_and_one_swapped_record_does_not(seed: int) -> None:
    random = Random(seed)
    history = Life(random).live(300)
    assert check(history).is_ok, check(history)
    polls = [number for number, row in enumerate(history.rows) if row.ops and isinstance(row.ops[0], Poll)]
    number = random.choice(polls[:-1])
    poll = history.rows[number].ops[0]
    assert isinstance(poll, Poll)
    (offset, value), *rest = poll.records
    swapped = Poll(poll.partition, ((offset, -1 - int(value)), *rest))
    row = history.rows[number]
    history.rows[number] = type(row)(row.process, row.f, row.type, row.time, (swapped,))
    assert not check(history).is_ok


class Life:
    """Two partitions, three producers, two readers, answers that get lost; readers read to the end at last."""

    def __init__(self, random: Random) -> None:
        self.history = History()
        self._random = random
        self._logs: dict[Partition, list[int]] = {("a", 0): [], ("b", 1): []}
        self._positions = {(reader, partition): 0 for reader in ("c1", "c2") for partition in self._logs}

    def live(self, step_count: int) -> History:
        for step in range(step_count):
            partition = self._random.choice(list(self._logs))
            if self._random.random() < 0.5:
                self._send(partition, step)
            else:
                self._read(self._random.choice(["c1", "c2"]), partition, self._random.randint(1, 5), step)
        for reader, partition in self._positions:
            self._read(reader, partition, step_count, step_count)
        return self.history

    def _send(self, partition: Partition, value: int) -> None:
        process, log = f"p{self._random.randrange(3)}", self._logs[partition]
        self.history.invoke(process, "send", [Send(partition, value)], time=value)
        outcome = self._random.choice(["ok", "ok", "info", "fail"])
        if outcome == "ok" or (outcome == "info" and self._random.random() < 0.5):
            log.append(value)
        told = len(log) - 1 if outcome == "ok" else None
        getattr(self.history, outcome)(process, "send", [Send(partition, value, told)], time=value)

    def _read(self, reader: str, partition: Partition, count: int, time: int) -> None:
        start = self._positions[reader, partition]
        records = tuple(enumerate(self._logs[partition]))[start : start + count]
        self._positions[reader, partition] = start + len(records)
        if records:
            self.history.ok(reader, "poll", [Poll(partition, records)], time=time)
