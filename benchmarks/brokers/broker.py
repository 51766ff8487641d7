"""A broker process for a measurement: `with Kafka(folder) as broker:`; its folder is deleted when the block ends."""

from __future__ import annotations

import shutil
import signal
import subprocess
import tempfile
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType, TracebackType
from typing import Self

from confluent_kafka.admin import AdminClient, NewPartitions, NewTopic

from benchmarks import process
from benchmarks.loads.rpc import Connection
from broker_engine.wire.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from tests.ports import own_port

START_TIMEOUT_S = 300.0
STOP_TIMEOUT_S = 120.0
ADMIN_TIMEOUT_S = 600.0
ADMIN_REQUEST_TIMEOUT_S = 300.0
PARTITIONS_PER_REQUEST_MAX = 1_000
"""Kafka refuses 10,000 in one request; both get them in steps."""
POLL_S = 0.01
NO_CONFIGS: Mapping[str, str] = MappingProxyType({})


class Broker(ABC):
    side: str
    replication_factor = 1

    def __init__(self, folder: Path, *, is_tls: bool = False) -> None:
        self.folder = folder
        self.is_tls = is_tls
        self.port = own_port()
        self.tls_port = own_port()
        self.start_s = 0.0
        self.output = Path(tempfile.gettempdir()) / f"highwater-bench-{self.port}.log"
        """Not beside the data: a broker that has a file system to itself may flush it whole."""
        self._process: subprocess.Popen[bytes] | None = None

    @abstractmethod
    def prepare(self) -> None:
        """Once, before the first start: config files, formatting."""

    @abstractmethod
    def command(self) -> list[str]: ...

    @abstractmethod
    def topic_configs(self, *, durability: str) -> dict[str, str]:
        """`page-cache`: an ack promises the page cache; `fsync`: the disk; `default`: as it comes."""

    def __enter__(self) -> Self:
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(parents=True)
        try:
            self.prepare()
            self.start()
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        self._end()

    def _end(self) -> None:
        try:
            self.stop()
        finally:
            shutil.rmtree(self.folder, ignore_errors=True)
            self.output.unlink(missing_ok=True)

    def start(self) -> None:
        """Until the first metadata answer; `start_s` says how long that took."""
        started = time.perf_counter()
        with self.output.open("ab") as output:
            self._process = subprocess.Popen(self.command(), stdout=output, stderr=output)
        while not self._answers():
            if self._process.poll() is not None or time.perf_counter() - started > START_TIMEOUT_S:
                tail = self.output.read_text()[-2_000:]
                raise RuntimeError(f"{self.side} did not start:\n{tail}")
            time.sleep(POLL_S)
        self.start_s = time.perf_counter() - started

    def stop(self) -> None:
        """A clean stop; killed if that takes too long."""
        running, self._process = self._process, None
        if running is None:
            return
        running.send_signal(signal.SIGTERM)
        try:
            running.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            running.kill()
            running.wait()

    def _answers(self) -> bool:
        try:
            return bool(self.metadata(topics=[]).brokers)
        except OSError:
            return False

    def metadata(self, topics: list[str] | None) -> MetadataResponse:
        wanted = None if topics is None else [MetadataRequestTopic(name=name) for name in topics]
        with Connection(self.port) as connection:
            answer = connection.call(MetadataRequest(topics=wanted, allow_auto_topic_creation=False), version=9)
        assert isinstance(answer, MetadataResponse)
        return answer

    @property
    def pid(self) -> int:
        assert self._process is not None, "the broker is not running"
        return self._process.pid

    @property
    def bootstrap(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def rss_bytes(self) -> int:
        return process.rss_bytes(self.pid)

    def create_topic(
        self,
        name: str,
        partition_count: int,
        *,
        durability: str = "page-cache",
        configs: Mapping[str, str] = NO_CONFIGS,
    ) -> float:
        """Seconds until every partition has a leader in the metadata."""
        started = time.perf_counter()
        configs = {**self.topic_configs(durability=durability), **configs}
        topic = NewTopic(
            name, min(partition_count, PARTITIONS_PER_REQUEST_MAX), self.replication_factor, config=configs
        )
        admin = self._admin()
        admin.create_topics([topic], request_timeout=ADMIN_REQUEST_TIMEOUT_S)[name].result(ADMIN_TIMEOUT_S)
        for count in range(2 * PARTITIONS_PER_REQUEST_MAX, partition_count + 1, PARTITIONS_PER_REQUEST_MAX):
            more = admin.create_partitions([NewPartitions(name, count)], request_timeout=ADMIN_REQUEST_TIMEOUT_S)
            more[name].result(ADMIN_TIMEOUT_S)
        while not self._has_leaders(name, partition_count):
            assert time.perf_counter() - started < ADMIN_TIMEOUT_S, f"{name} has no leaders"
            time.sleep(POLL_S)
        return time.perf_counter() - started

    def _has_leaders(self, name: str, partition_count: int) -> bool:
        partitions = self.metadata([name]).topics[0].partitions
        return sum(partition.leader_id >= 0 for partition in partitions) == partition_count

    def delete_topic(self, name: str) -> None:
        admin = self._admin()  # its handle must live until the answer is there
        admin.delete_topics([name], request_timeout=ADMIN_REQUEST_TIMEOUT_S)[name].result(ADMIN_TIMEOUT_S)

    def _admin(self) -> AdminClient:
        return AdminClient({"log_level": 0, "bootstrap.servers": self.bootstrap, "socket.timeout.ms": 300_000})
