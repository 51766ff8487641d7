"""The same conversations with a real Kafka and with us: every code, producer id and epoch is the same, but for what
docs/differences.md says.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.broker_engine.broker_process import BrokerProcess
from tests.broker_engine.cluster.cluster_process import wait_for
from tests.broker_engine.handlers.calls import create, fetch
from tests.broker_engine.handlers.transaction_calls import (
    Producer,
    add,
    added,
    describe,
    end,
    init,
    listed,
    started,
    wait_for_state,
    write,
)
from tests.broker_engine.log.kafka_tools import need_kafka_tools
from tests.broker_engine.log.test_kafka_broker import KafkaBroker
from tests.broker_engine.raw_client import RawClient

pytestmark = [pytest.mark.kafka_peer, pytest.mark.slow]
OFTEN = {"transaction.abort.timed.out.transaction.cleanup.interval.ms": "100"}
Story = Callable[["Talk"], None]


class Talk:
    """One broker's part of a conversation, as lines. Producer ids are told as steps from the first one."""

    def __init__(self, client: RawClient, topic: str) -> None:
        self.client = client
        self.topic = topic
        self.lines: list[str] = []
        self._first_id: int | None = None

    def start(self, name: str, **options: int) -> Producer:
        producer = started(self.client, name, **options)
        if self._first_id is None:
            self._first_id = producer.id
        self.lines.append(f"started {self._told(producer.id, producer.epoch)}")
        return producer

    def init(self, producer: Producer, version: int = 5, *, is_expected: bool = True) -> Producer:
        fields = {"producer_id": producer.id, "producer_epoch": producer.epoch} if is_expected else {}
        answer = init(self.client, producer.transactional_id, version, **fields)
        self.lines.append(f"init {answer.error_code} {self._told(answer.producer_id, answer.producer_epoch)}")
        return producer._replace(id=answer.producer_id, epoch=answer.producer_epoch)

    def add(self, producer: Producer, version: int = 3) -> None:
        self.lines.append(f"add {add(self.client, producer, (self.topic, 0), version=version)}")

    def added(self, producer: Producer) -> None:
        added(self.client, producer, (self.topic, 0))

    def write(self, producer: Producer, *, sequence: int = 0, version: int = 11) -> None:
        answer = write(self.client, producer, self.topic, b"v", sequence=sequence, version=version)
        self.lines.append(f"write {answer.error_code}")

    def end(self, producer: Producer, *, is_commit: bool, version: int = 4) -> None:
        answer = end(self.client, producer, is_commit=is_commit, version=version)
        word = "commit" if is_commit else "abort"
        told = self._told(answer.producer_id, answer.producer_epoch)
        self.lines.append(f"{word} v{version} {answer.error_code} {told}")

    def wait(self, name: str, state: str) -> None:
        found = wait_for_state(self.client, name, state)
        self.lines.append(f"{state} at epoch {found.producer_epoch}")

    def look(self, name: str) -> None:
        self.lines.append(f"{describe(self.client, name).transaction_state} {listed(self.client).get(name)}")

    def _told(self, producer_id: int, epoch: int) -> str:
        if producer_id < 0:
            return f"nobody, {epoch}"
        assert self._first_id is not None
        return f"{'same' if producer_id == self._first_id else 'other'} producer, {epoch}"


# --- the stories


def first_version(talk: Talk) -> None:
    producer = talk.start("one")
    talk.end(producer, is_commit=True)
    talk.end(producer, is_commit=False)
    talk.add(producer._replace(epoch=7))
    talk.add(producer._replace(epoch=7), version=1)
    talk.added(producer)
    talk.look("one")
    talk.write(producer)
    talk.write(producer._replace(epoch=producer.epoch + 1), version=11)
    talk.end(producer._replace(epoch=7), is_commit=True, version=1)
    talk.end(producer, is_commit=True)
    talk.wait("one", "CompleteCommit")
    for is_commit in (True, False):
        talk.end(producer, is_commit=is_commit)
    talk.added(producer)
    talk.write(producer, sequence=1)
    talk.end(producer, is_commit=False)
    talk.wait("one", "CompleteAbort")
    for is_commit in (True, False):
        talk.end(producer, is_commit=is_commit)
    talk.write(producer, sequence=2)
    talk.write(producer, sequence=2, version=10)


def going_on(talk: Talk) -> None:
    producer = talk.start("two")
    following = talk.init(producer)
    talk.init(producer)
    talk.init(producer._replace(epoch=9))
    talk.init(producer._replace(epoch=9), version=3)
    talk.init(producer._replace(id=producer.id + 1))
    talk.init(following, is_expected=False)
    talk.init(following)
    talk.init(producer)


def fenced(talk: Talk) -> None:
    first = talk.start("three")
    talk.added(first)
    talk.write(first)
    talk.init(first, is_expected=False)
    talk.start("three")
    talk.add(first)
    talk.write(first, sequence=1)
    talk.end(first, is_commit=True)
    talk.end(first, is_commit=True, version=1)
    talk.init(first)


def second_version(talk: Talk) -> None:
    producer = talk.start("four")
    talk.end(producer, is_commit=True, version=5)
    talk.end(producer, is_commit=False, version=5)
    talk.wait("four", "CompleteAbort")
    talk.end(producer, is_commit=False, version=5)
    talk.end(producer, is_commit=True, version=5)
    producer = producer._replace(epoch=producer.epoch + 1)
    talk.end(producer, is_commit=True, version=5)
    talk.write(producer, version=12)
    talk.end(producer, is_commit=True, version=5)
    talk.wait("four", "CompleteCommit")
    talk.end(producer, is_commit=True, version=5)
    talk.end(producer, is_commit=False, version=5)
    talk.end(producer, is_commit=True)
    talk.write(producer, sequence=1, version=12)
    producer = producer._replace(epoch=producer.epoch + 1)
    talk.end(producer, is_commit=True, version=5)
    talk.end(producer, is_commit=False, version=5)
    talk.wait("four", "CompleteAbort")


def too_slow(talk: Talk) -> None:
    producer = talk.start("five", timeout_ms=1_000)
    talk.added(producer)
    talk.write(producer)
    talk.wait("five", "CompleteAbort")
    talk.add(producer)
    talk.add(producer, version=1)
    talk.write(producer, sequence=1)
    talk.end(producer, is_commit=True)
    talk.end(producer, is_commit=True, version=5)
    talk.end(producer, is_commit=False, version=5)
    talk.init(producer)


def both_versions(talk: Talk) -> None:
    """Which rules hold is a matter of each request."""
    producer = talk.start("six")
    talk.write(producer, version=12)
    talk.end(producer, is_commit=True)
    talk.wait("six", "CompleteCommit")
    talk.end(producer, is_commit=True)
    talk.added(producer)
    talk.write(producer, sequence=1)
    talk.end(producer, is_commit=False, version=5)
    talk.wait("six", "CompleteAbort")
    talk.end(producer, is_commit=False)
    producer = producer._replace(epoch=producer.epoch + 1)
    talk.end(producer, is_commit=False)
    talk.end(producer, is_commit=True)
    talk.init(producer)


def giving_up_by_itself(talk: Talk) -> None:
    producer = talk.start("seven")
    talk.added(producer)
    talk.init(producer)
    talk.wait("seven", "CompleteAbort")
    talk.init(producer)
    talk.init(producer)


STORIES: list[Story] = [
    first_version,
    going_on,
    fenced,
    second_version,
    too_slow,
    both_versions,
    giving_up_by_itself,
]


def an_older_one(talk: Talk) -> None:
    older = talk.start("eight")
    newer = talk.start("eight")
    talk.added(newer)
    talk.init(older)


def test_an_older_producer_does_not_abort_what_is_open_here(kafka: str, ours: str) -> None:
    begun = ["started same producer, 0", "started same producer, 1"]
    assert lines_of(ours, an_older_one) == [*begun, "init 90 nobody, -1"]
    assert lines_of(kafka, an_older_one) == [*begun, "init 51 nobody, -1"]


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    need_kafka_tools()
    broker = KafkaBroker(tmp_path_factory.mktemp("peer") / "kafka")
    with (broker.folder / "kafka.properties").open("a") as properties:
        properties.writelines(f"{name}={value}\n" for name, value in OFTEN.items())
    broker.start()
    yield broker.bootstrap
    broker.stop()


@pytest.fixture(scope="module")
def ours(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    path: Path = tmp_path_factory.mktemp("peer") / "ours"
    with BrokerProcess(path, settings=OFTEN) as process:
        yield process.address()


@pytest.mark.parametrize("story", STORIES, ids=lambda story: str(story.__name__))
def test_a_conversation_goes_the_same_way(kafka: str, ours: str, story: Story) -> None:
    assert lines_of(ours, story) == lines_of(kafka, story)


def lines_of(address: str, story: Story) -> list[str]:
    with RawClient(address) as client:
        topic = create(client)
        wait_for("a leader that answers", lambda: fetch(client, topic).error_code == 0)  # Kafka's takes a moment
        talk = Talk(client, topic)
        story(talk)
    return talk.lines
