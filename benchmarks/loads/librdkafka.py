"""librdkafka through confluent-kafka: its defaults but for what a row names; batched calls, so Python costs little."""

from __future__ import annotations

import threading
import time

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, Message, Producer, TopicPartition

from benchmarks.loads.frames import payload
from benchmarks.loads.result import Timed
from benchmarks.process import usage

CALL_RECORDS = 1_000
QUEUED_BYTES_MAX = 64_000_000
FLUSH_TIMEOUT_S = 300.0
CONSUME_TIMEOUT_S = 60.0


class Feeder:
    """One producer that is kept busy without ever filling its queue."""

    def __init__(self, bootstrap: str, topic: str, record_bytes: int, *, acks: str, codec: str) -> None:
        settings: dict[str, object] = {"bootstrap.servers": bootstrap, "acks": acks, "compression.type": codec}
        settings |= {"enable.idempotence": acks == "all", "delivery.report.only.error": True, "log_level": 3}
        self._producer = Producer(settings)
        self._topic = topic
        self._call_count = max(1, min(CALL_RECORDS, 2_000_000 // record_bytes))
        self._messages = [{"value": payload(record_bytes)} for _ in range(self._call_count)]
        self._queued_max = min(90_000, QUEUED_BYTES_MAX // record_bytes)
        self.errors: list[str] = []

    def send(self, record_count: int) -> None:
        """Returns when all are acknowledged (or, with acks=0, sent)."""
        left = record_count
        while left > 0:
            while len(self._producer) > self._queued_max:
                self._producer.poll(0.001)
            messages = self._messages if left >= self._call_count else self._messages[:left]
            queued = self._producer.produce_batch(self._topic, messages, on_delivery=self._on_failed)
            assert queued == len(messages), "the producer's queue was full"
            left -= queued
        assert self._producer.flush(FLUSH_TIMEOUT_S) == 0, "records were not acknowledged in time"
        assert not self.errors, f"{len(self.errors)} records failed, the first with {self.errors[0]}"

    def _on_failed(self, error: KafkaError | None, message: Message) -> None:
        if error is not None:
            self.errors.append(str(error))


def produce(
    bootstrap: str,
    pid: int,
    topic: str,
    *,
    record_bytes: int,
    total_bytes: int,
    acks: str = "1",
    codec: str = "none",
    producer_count: int = 1,
) -> Timed:
    feeders = [Feeder(bootstrap, topic, record_bytes, acks=acks, codec=codec) for _ in range(producer_count)]
    each = max(1, total_bytes // record_bytes // producer_count)
    _send_all(feeders, max(1, each // 10))
    before, started = usage(pid), time.perf_counter()
    _send_all(feeders, each)
    elapsed_s, after = time.perf_counter() - started, usage(pid)
    count = each * producer_count
    return Timed(elapsed_s, count * record_bytes, count, after - before)


def _send_all(feeders: list[Feeder], each: int) -> None:
    threads = [threading.Thread(target=feeder.send, args=(each,)) for feeder in feeders]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not any(feeder.errors for feeder in feeders), "records failed"


def consume(bootstrap: str, pid: int, topic: str, *, partition_count: int, record_count: int) -> Timed:
    """From the beginning, by assignment: no group takes part."""
    consumer = Consumer(
        {"bootstrap.servers": bootstrap, "group.id": "bench", "enable.auto.commit": False, "log_level": 3}
    )
    consumer.list_topics(topic, timeout=30)
    consumer.assign([TopicPartition(topic, index, OFFSET_BEGINNING) for index in range(partition_count)])
    before = usage(pid)
    assert consumer.poll(CONSUME_TIMEOUT_S) is not None, "no record came"
    started = time.perf_counter()  # the writer may have started late
    seen, total_bytes = 1, 0
    while seen < record_count:
        messages = consumer.consume(min(10_000, record_count - seen), timeout=CONSUME_TIMEOUT_S)
        assert messages, f"the consumer saw only {seen} of {record_count} records"
        seen += len(messages)
        total_bytes += len(messages) * len(messages[-1])
    elapsed_s, after = time.perf_counter() - started, usage(pid)
    consumer.close()
    return Timed(elapsed_s, total_bytes, seen, after - before)
