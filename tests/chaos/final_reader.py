"""After an act: every partition is read from its beginning to its end, by a reader of its own that shows no open
transaction; and what the history then says of values.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence

from confluent_kafka import Consumer, KafkaError, Message

from broker_engine.simulator.history import EndOffset, History, Poll, Send
from broker_engine.simulator.history.rows import Partition, RowType
from tests.chaos.load import READ_COMMITTED, add_polls, end_offset, open_consumer

TIMEOUT_S = 60.0
NAME = "final"
TO_THE_END = {**READ_COMMITTED, "enable.partition.eof": True}


def read_all(bootstrap: str, partitions: Sequence[Partition], history: History) -> list[str]:
    """Empty, or why the end was not reached."""
    consumer = open_consumer(bootstrap, partitions, **TO_THE_END)
    history.ok(NAME, "assign", time=time.monotonic())
    ends = _ends(consumer, history, partitions)
    missing = {partition: end for partition, end in ends.items() if end}
    deadline = time.monotonic() + TIMEOUT_S
    while missing and time.monotonic() < deadline:
        messages = consumer.consume(1_000, timeout=0.5)
        add_polls(history, NAME, messages)
        for partition, position in positions(messages):
            if position >= ends[partition]:
                missing.pop(partition, None)
    consumer.close()
    return [f"the final reader did not get to the end of {sorted(missing)}"] if missing else []


def positions(messages: Sequence[Message]) -> list[tuple[Partition, int]]:
    """How far each partition is known: a reader never sees a transaction's marker, but is told of the end behind it."""
    known = []
    for message in messages:
        topic, number, offset, error = message.topic(), message.partition(), message.offset(), message.error()
        if topic is None or number is None or offset is None:
            continue
        if error is None:
            known.append(((topic, number), offset + 1))
        elif error.code() == KafkaError._PARTITION_EOF:
            known.append(((topic, number), offset))
    return known


def _ends(consumer: Consumer, history: History, partitions: Sequence[Partition]) -> dict[Partition, int]:
    ends = {}
    for partition in partitions:
        history.invoke(NAME, "list_offsets", [EndOffset(partition)], time=time.monotonic())
        ends[partition] = end_offset(consumer, partition)
        history.ok(NAME, "list_offsets", [EndOffset(partition, ends[partition])], time=time.monotonic())
    return ends


def values_of(history: History, kind: RowType, processes: Sequence[str], topic: str) -> set[str]:
    """What these sent to the topic, with that outcome."""
    rows = (row for row in history.rows if row.f == "send" and row.type == kind and row.process in processes)
    return {str(op.value) for row in rows for op in row.ops if isinstance(op, Send) and op.partition[0] == topic}


def read_values(history: History, partitions: Sequence[Partition]) -> Counter[str]:
    """What the final reader found there, and how often."""
    ops = (op for row in history.rows if row.process == NAME for op in row.ops)
    polls = (op for op in ops if isinstance(op, Poll) and op.partition in partitions)
    return Counter(str(value) for op in polls for _, value in op.records)
