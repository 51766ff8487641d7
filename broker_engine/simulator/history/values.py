"""Anomalies of single values: where they stand, whether they were lost, whether anybody should have seen them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from broker_engine.simulator.history.index import Index, Sent
from broker_engine.simulator.history.report import Anomaly, Kind
from broker_engine.simulator.history.rows import Partition, Poll, Row, Send, Value


def inconsistent_offsets(index: Index) -> Iterator[Anomaly]:
    for (partition, offset), others in index.others.items():
        values = [index.values[partition][offset], *others]
        yield Anomaly(Kind.INCONSISTENT_OFFSETS, f"offset {offset} has the values {values}", partition)


def duplicates(index: Index) -> Iterator[Anomaly]:
    for value, copies in index.copies.items():
        partition, offset = index.places[value]
        others = ", ".join(f"{topic}-{number} {copy}" for (topic, number), copy in copies)
        yield Anomaly(Kind.DUPLICATE, f"value {value} stands at {offset} and at {others}", partition, value)


def lost_and_unseen(index: Index) -> Iterator[Anomaly]:
    highest = {partition: max(offsets, default=-1) for partition, offsets in index.read_offsets.items()}
    for value, sent in index.sends.items():
        is_lost = sent.outcome == "ok" and value not in index.readers and not sent.is_in_transaction
        if is_lost and not _is_deleted(index, sent):
            yield _lost(value, sent, highest.get(sent.partition, -1))


def _is_deleted(index: Index, sent: Sent) -> bool:
    return sent.offset is not None and sent.offset < index.allowed.first_offsets.get(sent.partition, 0)


def _lost(value: Value, sent: Sent, highest_read: int) -> Anomaly:
    told = f"value {value} of {sent.process}, acknowledged at offset {sent.offset}, was never read"
    if sent.offset is not None and sent.offset <= highest_read:
        return Anomaly(Kind.LOST_WRITE, f"{told}, though offset {highest_read} was", sent.partition, value)
    return Anomaly(Kind.UNSEEN, told, sent.partition, value)


def aborted_reads(index: Index) -> Iterator[Anomaly]:
    for value, sent in index.sends.items():
        if sent.outcome == "fail" and value in index.readers:
            detail = (
                f"value {value} of {sent.process} was read in row {index.readers[value]}, but failed or was aborted"
            )
            yield Anomaly(Kind.G1A, detail, sent.partition, value)


def unknown_values(index: Index) -> Iterator[Anomaly]:
    for value, row in index.readers.items():
        if value not in index.sends:
            partition, offset = index.places[value]
            yield Anomaly(Kind.UNKNOWN_VALUE, f"value {value} at {offset}, read in row {row}", partition, value)


def precommitted_reads(rows: Sequence[Row]) -> Iterator[Anomaly]:
    for number, row in enumerate(rows):
        if row.f == "txn" and row.type != "invoke":
            yield from _own_reads(number, row)


def _own_reads(number: int, row: Row) -> Iterator[Anomaly]:
    own: dict[Value, Partition] = {op.value: op.partition for op in row.ops if isinstance(op, Send)}
    for op in row.ops:
        if isinstance(op, Poll):
            for offset, value in op.records:
                if value in own:
                    detail = f"the transaction of row {number} read its own value {value} at {offset}"
                    yield Anomaly(Kind.PRECOMMITTED_READ, detail, op.partition, value)
