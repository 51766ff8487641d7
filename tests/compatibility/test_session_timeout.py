"""group.min.session.timeout.ms and group.max.session.timeout.ms: a client outside of them is told so (error 26)."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from aiokafka import AIOKafkaConsumer
from aiokafka.errors import InvalidSessionTimeoutError as AioInvalidSessionTimeoutError
from confluent_kafka import Consumer, KafkaError
from kafka import KafkaConsumer
from kafka.errors import InvalidSessionTimeoutError

from tests.broker_engine.broker_process import BrokerProcess
from tests.broker_engine.cluster.cluster_process import wait_for
from tests.compatibility.observer import Observer

TOPIC = "bounded"
MIN_MS, MAX_MS = 8_000, 20_000
OUTSIDE_MS = [MIN_MS - 1, MAX_MS + 1]
WAIT_S = 30.0


@pytest.fixture(scope="module")
def bootstrap(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    settings = {"group.min.session.timeout.ms": str(MIN_MS), "group.max.session.timeout.ms": str(MAX_MS)}
    with BrokerProcess(tmp_path_factory.mktemp("session") / "broker", settings=settings) as process:
        Observer(process.address()).create({TOPIC: 1})
        yield process.address()


def librdkafka(bootstrap: str, session_timeout_ms: int) -> Consumer:
    settings = {"bootstrap.servers": bootstrap, "group.id": f"of-{session_timeout_ms}", "log_level": 0}
    consumer = Consumer({**settings, "session.timeout.ms": session_timeout_ms})
    consumer.subscribe([TOPIC])
    return consumer


@pytest.mark.parametrize("session_timeout_ms", OUTSIDE_MS)
def test_librdkafka_is_told_that_its_session_timeout_is_out_of_bounds(bootstrap: str, session_timeout_ms: int) -> None:
    consumer = librdkafka(bootstrap, session_timeout_ms)
    try:
        message = wait_for("an answer", lambda: consumer.poll(0.2), timeout_s=WAIT_S)
    finally:
        consumer.close()
    error = message.error()
    assert error is not None
    assert error.code() == KafkaError.INVALID_SESSION_TIMEOUT == 26
    assert f"of-{session_timeout_ms}" not in Observer(bootstrap).groups()


@pytest.mark.parametrize("session_timeout_ms", [MIN_MS, MAX_MS])
def test_the_bounds_themselves_are_within(bootstrap: str, session_timeout_ms: int) -> None:
    consumer = librdkafka(bootstrap, session_timeout_ms)

    def is_member() -> bool:
        message = consumer.poll(0.1)
        assert message is None or message.error() is None, message.error()
        return bool(consumer.assignment())

    try:
        wait_for("its partition", is_member, timeout_s=WAIT_S)
    finally:
        consumer.close()


@pytest.mark.parametrize("session_timeout_ms", OUTSIDE_MS)
def test_kafka_python_is_told(bootstrap: str, session_timeout_ms: int) -> None:
    settings = {"bootstrap_servers": bootstrap, "group_id": "of-kafka-python", "max_poll_interval_ms": 60_000}
    consumer = KafkaConsumer(TOPIC, **settings, session_timeout_ms=session_timeout_ms)
    try:
        with pytest.raises(InvalidSessionTimeoutError):
            wait_for("an answer", lambda: consumer.poll(200) or None, timeout_s=WAIT_S)
    finally:
        consumer.close()


@pytest.mark.parametrize("session_timeout_ms", OUTSIDE_MS)
async def test_aiokafka_is_told(bootstrap: str, session_timeout_ms: int) -> None:
    settings = {"bootstrap_servers": bootstrap, "group_id": "of-aiokafka", "session_timeout_ms": session_timeout_ms}
    consumer = AIOKafkaConsumer(TOPIC, **settings)
    with pytest.raises(AioInvalidSessionTimeoutError):
        await consumer.start()
    await consumer.stop()
