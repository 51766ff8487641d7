"""Fetch requests, plain or over TLS, that throw the records away: what the broker can give, not the client take."""

from __future__ import annotations

import threading
import time

from benchmarks.loads.result import Timed
from benchmarks.loads.rpc import Connection
from benchmarks.process import usage
from broker_engine.records.header import iter_batches, parse_header
from broker_engine.wire.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic

FETCH_VERSION = 12
"""The last one with topic names."""


class Reader:
    """Reads one partition from `offset`, `fetch_bytes` at a time, until `total_bytes` came."""

    def __init__(self, port: int, topic: str, partition: int, fetch_bytes: int, *, is_tls: bool) -> None:
        self._connection = Connection(port, is_tls=is_tls)
        self._topic, self._partition, self._fetch_bytes = topic, partition, fetch_bytes
        self.offset = 0
        self.total_bytes = 0
        self.request_count = 0

    def read_until(self, total_bytes: int) -> None:
        with self._connection:
            while self.total_bytes < total_bytes:
                self._fetch()

    def _fetch(self) -> None:
        answer = self._connection.call(self._request(), FETCH_VERSION)
        assert isinstance(answer, FetchResponse)
        partition = answer.responses[0].partitions[0]
        assert partition.error_code == 0, f"fetch answered {partition.error_code}"
        records = partition.records
        assert isinstance(records, bytes | memoryview), "a fetch answer without records"
        batches = list(iter_batches(records))
        assert batches, "the partition ended before the reader had enough"
        self.offset = parse_header(batches[-1]).next_offset
        self.total_bytes += len(records)
        self.request_count += 1

    def _request(self) -> FetchRequest:
        partition = FetchPartition(
            partition=self._partition, fetch_offset=self.offset, partition_max_bytes=self._fetch_bytes
        )
        topic = FetchTopic(topic=self._topic, partitions=[partition])
        return FetchRequest(max_wait_ms=500, min_bytes=1, max_bytes=50 << 20, topics=[topic])


def fetch(
    port: int,
    pid: int,
    topic: str,
    *,
    reader_count: int,
    bytes_each: int,
    partition: int = 0,
    start_offset: int = 0,
    fetch_bytes: int = 1 << 20,
    is_tls: bool = False,
) -> Timed:
    """`reader_count` connections read the same partition at once, each in a thread (they wait in recv)."""
    readers = [Reader(port, topic, partition, fetch_bytes, is_tls=is_tls) for _ in range(reader_count)]
    for reader in readers:
        reader.offset = start_offset
    threads = [threading.Thread(target=reader.read_until, args=(bytes_each,)) for reader in readers]
    before, started = usage(pid), time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    elapsed_s, after = time.perf_counter() - started, usage(pid)
    assert all(reader.total_bytes >= bytes_each for reader in readers), "a reader failed"
    total_bytes = sum(reader.total_bytes for reader in readers)
    return Timed(elapsed_s, total_bytes, sum(reader.request_count for reader in readers), after - before)
