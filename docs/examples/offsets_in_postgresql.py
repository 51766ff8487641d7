"""Offsets outside Kafka, in one transaction with the result: each record counts exactly once, whoever is killed.

python docs/examples/offsets_in_postgresql.py --bootstrap 127.0.0.1:9092 --topic words --database postgres://...

Counts records by key. Counts and next offsets stand in the same PostgreSQL database and change in one transaction, so a
process that dies leaves both or neither. The group only shares out partitions; where to begin is read from the database
whenever partitions are assigned. Nothing is committed to the broker.
"""

from __future__ import annotations

import argparse
import signal
from collections import Counter
from collections.abc import Sequence
from types import FrameType

import psycopg
from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaException, Message, TopicPartition

TABLES = """
CREATE TABLE IF NOT EXISTS counts (key text PRIMARY KEY, times bigint NOT NULL);
CREATE TABLE IF NOT EXISTS offsets (topic text, partition int, next bigint NOT NULL, PRIMARY KEY (topic, partition));
"""
ONE_AT_A_TIME = 4_711  # of an advisory lock: two processes that create the tables at once would trip over each other


class MovedError(Exception):
    """Somebody else has counted these records: the partition is no longer ours, we have just not been told yet."""


class CountingConsumer:
    def __init__(self, bootstrap: str, topic: str, group: str, database: str, session_ms: int) -> None:
        self._database = psycopg.connect(database, autocommit=True)
        with self._database.transaction():
            self._database.execute("SELECT pg_advisory_xact_lock(%s)", [ONE_AT_A_TIME])
            self._database.execute(TABLES)
        self._consumer = Consumer({
            "bootstrap.servers": bootstrap,
            "group.id": group,
            "enable.auto.commit": False,
            "session.timeout.ms": session_ms,
            "heartbeat.interval.ms": max(100, session_ms // 10),
        })  # fmt: skip
        self._consumer.subscribe([topic], on_assign=self._on_assign)
        self._is_over = False

    def _on_assign(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        """The rebalance listener: each new partition begins where the database says."""
        for part in partitions:
            query = "SELECT next FROM offsets WHERE topic = %s AND partition = %s"
            known = self._database.execute(query, [part.topic, part.partition]).fetchone()
            part.offset = known[0] if known else OFFSET_BEGINNING
        consumer.assign(partitions)

    def run(self) -> None:
        while not self._is_over:
            messages = self._consumer.consume(100, timeout=0.5)
            for message in messages:
                error = message.error()
                if error is not None and not error.retriable():
                    raise KafkaException(error)
            self._store([message for message in messages if message.error() is None])
        self._consumer.close()

    def _store(self, messages: Sequence[Message]) -> None:
        try:
            with self._database.transaction():
                for partition in sorted({message.partition() for message in messages}):
                    self._store_partition([message for message in messages if message.partition() == partition])
        except MovedError as moved:
            print(moved, flush=True)  # the transaction is rolled back; the next poll tells us of the rebalance

    def _store_partition(self, messages: Sequence[Message]) -> None:
        """The offset moves only from where these records begin: what a slow owner brings too late changes nothing."""
        first, last = messages[0], messages[-1]
        query = """
            INSERT INTO offsets AS known (topic, partition, next) VALUES (%s, %s, %s)
            ON CONFLICT (topic, partition) DO UPDATE SET next = excluded.next WHERE known.next <= %s
        """
        place = [first.topic(), first.partition()]
        if self._database.execute(query, [*place, last.offset() + 1, first.offset()]).rowcount == 0:
            raise MovedError(f"{place} was read by another member up to beyond {first.offset()}")
        for key, times in sorted(Counter((message.key() or b"").decode() for message in messages).items()):
            query = "INSERT INTO counts VALUES (%s, %s) ON CONFLICT (key) DO UPDATE SET times = counts.times + %s"
            self._database.execute(query, [key, times, times])

    def stop(self, _: int, __: FrameType | None) -> None:
        self._is_over = True


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bootstrap", default="127.0.0.1:9092")
    parser.add_argument("--topic", required=True)
    parser.add_argument("--group", default="counters")
    parser.add_argument("--database", required=True, help="postgres://user@host:port/name")
    parser.add_argument("--session-ms", type=int, default=45_000)
    given = parser.parse_args()
    counting = CountingConsumer(given.bootstrap, given.topic, given.group, given.database, given.session_ms)
    signal.signal(signal.SIGTERM, counting.stop)
    signal.signal(signal.SIGINT, counting.stop)
    counting.run()


if __name__ == "__main__":
    main()
