"""When a reader notes its offset, before or after the work, and dies in between (D14, F2). It keeps its offsets itself.

The reader is a process of its own; it is killed by SIGKILL at the worst moment: between the two steps.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
from pathlib import Path
from tempfile import TemporaryDirectory

from confluent_kafka import TopicPartition

from broker_engine.simulator.history import History
from broker_engine.simulator.history.rows import Partition
from tests.chaos.load import open_consumer
from tests.guarantees.lab import Lab, Sender
from tests.guarantees.story import Counts, Expected, Story

RECORDS, KILLED_AT = 200, 90
BATCH = 20
_context = multiprocessing.get_context("spawn")


def reader_dies(order: str) -> Story:
    def play(lab: Lab) -> Counts:
        partition = lab.topic()
        sender = Sender(lab, History(), partition, acks="all", **{"enable.idempotence": True})
        sender.send(RECORDS)
        sender.wait()
        with TemporaryDirectory() as folder:
            for is_killed in (True, False):
                process = _context.Process(
                    target=read, args=(lab.cluster.bootstrap, partition, order, folder, is_killed)
                )
                process.start()
                process.join(60)
                assert process.exitcode == (-signal.SIGKILL if is_killed else 0), process.exitcode
            done = (Path(folder) / "done").read_text().split()
        lost = RECORDS - len(set(done))
        return Counts(RECORDS, sender.acked, len(set(done)), lost, len(done) - len(set(done)))

    text, promise, expected = TEXTS[order]
    return Story(
        key=f"reader-{order}",
        items="D14, F2, F13",
        event="reader SIGKILLed between work and offset",
        setting=text,
        promise=promise,
        expected=expected,
        play=play,
    )


TEXTS = {
    "offset-first": ("offset stored, then the work done", "at most once", Expected.LOSES),
    "work-first": ("work done, then the offset stored", "at least once", Expected.DUPLICATES),
    "together": ("offset stored with the work's result, at once", "exactly once", Expected.KEEPS),
}


def read(bootstrap: str, partition: Partition, order: str, folder: str, is_killed: bool) -> None:
    """Reads in batches from the stored offset to the end; `done` lists the values whose work was done."""
    consumer, store, done = open_consumer(bootstrap, [partition]), Path(folder) / "offset", Path(folder) / "done"
    offset = _restore(store, done, order)
    consumer.assign([TopicPartition(*partition, offset)])
    while offset < RECORDS:
        messages = [message for message in consumer.consume(BATCH, timeout=1.0) if message.error() is None]
        values = [bytes(message.value() or b"").decode() for message in messages]
        must_die = is_killed and offset + len(values) > KILLED_AT
        offset += len(values)
        steps = {
            "offset-first": [lambda at=offset: store.write_text(str(at)), lambda new=values: _append(done, new)],
            "work-first": [lambda new=values: _append(done, new), lambda at=offset: store.write_text(str(at))],
            "together": [lambda new=values, at=offset: _append_at_once(store, done, new, at), lambda: None],
        }[order]
        steps[0]()
        if must_die:
            os.kill(os.getpid(), signal.SIGKILL)
        steps[1]()


def _restore(store: Path, done: Path, order: str) -> int:
    if not store.exists():
        return 0
    if order == "together":
        state = json.loads(store.read_text())
        done.write_text("".join(f"{value}\n" for value in state["done"]))
        return int(state["offset"])
    return int(store.read_text())


def _append(done: Path, values: list[str]) -> None:
    with done.open("a") as file:
        file.writelines(f"{value}\n" for value in values)


def _append_at_once(store: Path, done: Path, values: list[str], offset: int) -> None:
    """One rename makes both new."""
    before = json.loads(store.read_text())["done"] if store.exists() else []
    temporary = store.with_suffix(".new")
    temporary.write_text(json.dumps({"offset": offset, "done": before + values}))
    temporary.rename(store)
    done.write_text("".join(f"{value}\n" for value in before + values))


STORIES = tuple(reader_dies(order) for order in TEXTS)
