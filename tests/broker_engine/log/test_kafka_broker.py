"""A real Apache Kafka broker: its fresh directories open here, and ours open there, with the same records."""

from __future__ import annotations

import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from uuid import UUID

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from broker_engine.log.checkpoints import METADATA_FILE, parse_partition_metadata
from broker_engine.log.config import LogConfig
from broker_engine.log.files import DiskFiles
from broker_engine.log.partition_log import PartitionLog
from broker_engine.partition.core import PartitionCore
from broker_engine.records.batch import parse_header
from broker_engine.records.builder import NewRecord, build_batch
from tests.broker_engine.log.compacting import run_compaction
from tests.broker_engine.log.harness import LogHarness, ManualClock
from tests.broker_engine.log.kafka_tools import LIBS, need_kafka_tools
from tests.ports import own_port

pytestmark = [pytest.mark.kafka_peer, pytest.mark.slow]

START_TIMEOUT_S = 90.0
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
Pair = tuple[int, bytes | None, bytes | None]


class KafkaBroker:
    """One node, broker and controller. Its data stays over stop() and start()."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.data = folder / "data"
        self.port, self._controller_port = own_port(), own_port()
        self._process: subprocess.Popen[bytes] | None = None
        folder.mkdir()
        self._write_config()
        cluster_id = self._run("kafka.tools.StorageTool", "random-uuid").stdout.strip().splitlines()[-1]
        formatted = self._run(
            "kafka.tools.StorageTool", "format", "-t", cluster_id, "-c", str(folder / "kafka.properties")
        )
        assert formatted.returncode == 0, formatted.stderr

    def _write_config(self) -> None:
        lines = [
            "process.roles=broker,controller",
            "node.id=1",
            f"controller.quorum.voters=1@127.0.0.1:{self._controller_port}",
            f"listeners=PLAINTEXT://127.0.0.1:{self.port},CONTROLLER://127.0.0.1:{self._controller_port}",
            f"advertised.listeners=PLAINTEXT://127.0.0.1:{self.port}",
            "controller.listener.names=CONTROLLER",
            "listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
            "inter.broker.listener.name=PLAINTEXT",
            f"log.dirs={self.data}",
            "transaction.state.log.replication.factor=1",
            "transaction.state.log.min.isr=1",
            "offsets.topic.replication.factor=1",
            "transaction.state.log.num.partitions=1",
            "offsets.topic.num.partitions=1",
        ]
        (self.folder / "kafka.properties").write_text("\n".join(lines) + "\n")

    def _run(self, main_class: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        command = ["java", "-cp", f"{LIBS}/*", main_class, *arguments]
        return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)

    def start(self) -> None:
        command = ["java", "-Xmx384m", "-cp", f"{LIBS}/*", "kafka.Kafka", str(self.folder / "kafka.properties")]
        with (self.folder / "output.log").open("ab") as output:
            self._process = subprocess.Popen(command, stdout=output, stderr=output)
        deadline = time.monotonic() + START_TIMEOUT_S
        while not self._answers():
            assert self._process.poll() is None, (self.folder / "output.log").read_text()[-2000:]
            assert time.monotonic() < deadline, "Kafka did not start"

    def _answers(self) -> bool:
        try:
            return bool(self.admin().list_topics(timeout=1).brokers)
        except KafkaException:
            return False

    def stop(self) -> None:
        if self._process is not None:
            self._process.send_signal(signal.SIGTERM)
            self._process.wait(60)
            self._process = None

    @property
    def bootstrap(self) -> str:
        return f"127.0.0.1:{self.port}"

    def admin(self) -> AdminClient:
        return AdminClient({"bootstrap.servers": self.bootstrap, "log_level": 0})

    def create(self, name: str, **configs: str) -> Path:
        topic = NewTopic(name, 1, 1, config={key.replace("_", "."): value for key, value in configs.items()})
        admin = self.admin()  # its handle must live until the answer is there
        admin.create_topics([topic])[name].result(30)
        return self.data / f"{name}-0"

    def consume(self, topic: str, *, is_committed_only: bool) -> list[Pair]:
        level = "read_committed" if is_committed_only else "read_uncommitted"
        consumer = Consumer(
            {
                "bootstrap.servers": self.bootstrap,
                "group.id": "reader",
                "isolation.level": level,
                "enable.partition.eof": True,
                "auto.offset.reset": "earliest",
                "check.crcs": True,
            }
        )
        consumer.assign([TopicPartition(topic, 0, 0)])
        found: list[Pair] = []
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline:
            message = consumer.poll(1.0)
            if message is None:
                continue
            if message.error() is not None:
                break  # the end of the partition
            found.append((message.offset(), message.key(), message.value()))
        consumer.close()
        return found


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaBroker]:
    need_kafka_tools()
    broker = KafkaBroker(tmp_path_factory.mktemp("peer") / "kafka")
    broker.start()
    yield broker
    broker.stop()


def open_copy(folder: Path, target: Path) -> LogHarness:
    shutil.copytree(folder, target / folder.name)
    topic_id = parse_partition_metadata((folder / METADATA_FILE).read_bytes())
    assert topic_id is not None
    harness = LogHarness(DiskFiles(target / "other"))
    harness.log = PartitionLog.open(DiskFiles(target), folder.name, LogConfig(), ManualClock(), topic_id=topic_id)
    return harness


def data_pairs(harness: LogHarness) -> list[Pair]:
    markers = {header.base_offset for header in harness.log.iter_headers() if header.is_control}
    return [(r.offset, r.key, r.value) for r in harness.records() if r.offset not in markers]


def produce_all_kinds(bootstrap: str, topic: str) -> None:
    for codec in CODECS:
        producer = Producer({"bootstrap.servers": bootstrap, "compression.type": codec, "enable.idempotence": True})
        for number in range(30):
            producer.produce(topic, key=b"key-%d" % (number % 4), value=b"%s %d" % (codec.encode(), number))
        producer.flush(30)
    transactional = Producer({"bootstrap.servers": bootstrap, "transactional.id": f"{topic}-writer"})
    transactional.init_transactions(60)
    for number, is_commit in enumerate((True, False, True)):
        transactional.begin_transaction()
        transactional.produce(topic, key=b"txn", value=b"%d" % number)
        transactional.flush(30)
        if is_commit:
            transactional.commit_transaction(30)
        else:
            transactional.abort_transaction(30)


def test_a_directory_fresh_from_kafka_opens_here_with_the_same_records(kafka: KafkaBroker, tmp_path: Path) -> None:
    folder = kafka.create("fresh", index_interval_bytes="200")
    produce_all_kinds(kafka.bootstrap, "fresh")
    uncommitted = kafka.consume("fresh", is_committed_only=False)
    committed = kafka.consume("fresh", is_committed_only=True)
    assert len(uncommitted) == len(committed) + 1 == 153
    kafka.stop()
    harness = open_copy(folder, tmp_path)
    kafka.start()
    assert data_pairs(harness) == uncommitted
    (aborted,) = harness.log.aborted_transactions(0, harness.log.log_end_offset)
    hidden = range(aborted.first_offset, aborted.last_offset)
    assert [pair for pair in uncommitted if pair[0] not in hidden] == committed


def test_a_directory_that_we_wrote_and_compacted_opens_there_with_the_same_records(
    kafka: KafkaBroker, tmp_path: Path
) -> None:
    folder = kafka.create("ours", cleanup_policy="compact", min_cleanable_dirty_ratio="1")
    kafka.stop()
    topic_id = parse_partition_metadata((folder / METADATA_FILE).read_bytes())
    assert topic_id is not None
    shutil.rmtree(folder)
    expected = write_our_log(kafka.data, folder.name, topic_id)
    kafka.start()
    assert kafka.consume("ours", is_committed_only=True) == expected
    producer = Producer({"bootstrap.servers": kafka.bootstrap})
    reports: list[int] = []
    producer.produce(
        "ours", key=b"new", value=b"by kafka", on_delivery=lambda _, message: reports.append(message.offset())
    )
    producer.flush(30)
    assert reports == [expected[-1][0] + 1]


def write_our_log(data: Path, directory: str, topic_id: UUID) -> list[Pair]:
    """Several segments, all codecs, an idempotent producer, compacted, closed with a snapshot."""
    clock = ManualClock(int(time.time() * 1000))
    config = LogConfig(is_compacting=True, segment_bytes=1500, index_interval_bytes=200, min_cleanable_dirty_ratio=0)
    log = PartitionLog.open(DiskFiles(data), directory, config, clock, topic_id=topic_id)
    core = PartitionCore(
        leader_epoch=0, replicas=(1,), isr=(1,), log_start_offset=0, log_end_offset=0, durable_end_offset=0
    )
    log.pack_producers = core.pack_producers
    for number in range(60):
        batch = build_batch(
            [NewRecord(clock.now_ms(), b"key-%d" % (number % 7), b"%d" % number * 10)],
            codec=number % 5,
            producer_id=900,
            producer_epoch=0,
            base_sequence=number,
        )
        result = log.append(memoryview(batch), parse_header(batch), leader_epoch=0, log_append_time_ms=None)
        core.on_appended(result, parse_header(batch), clock.now_ms())
    job = run_compaction(log, now_ms=clock.now_ms(), last_batches=core.producers.last_batches(log.log_end_offset))
    assert job is not None
    assert job.written_bytes < job.read_bytes
    flush = log.flush_job()
    assert flush is not None
    flush.run()
    log.on_flushed(flush)
    harness = LogHarness(DiskFiles(data.parent / "scratch"))
    harness.log = log
    expected = data_pairs(harness)
    log.close()
    return expected
