"""One real broker per test module; topics are the tests' own, so that nothing needs to be cleaned up."""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator, Iterator

import pytest

from broker_engine.client import Admin, Client, ClientConfig, NewTopic, raise_errors
from tests.broker_engine.broker_process import BrokerProcess
from tests.broker_engine.client.reading import MakeTopic

_numbers = itertools.count()


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    with BrokerProcess(tmp_path_factory.mktemp("broker") / "data") as broker:
        yield broker


@pytest.fixture
async def client(broker: BrokerProcess) -> AsyncIterator[Client]:
    async with Client(ClientConfig(bootstrap=(broker.address(),), retry_backoff_ms=20)) as client:
        yield client


@pytest.fixture
def make_topic(client: Client) -> MakeTopic:
    async def make(partitions: int = 1, **configs: str) -> str:
        name = f"topic-{next(_numbers)}"
        named = {key.replace("_", "."): value for key, value in configs.items()}
        raise_errors(await Admin(client).create_topics([NewTopic(name, partitions, 1, named)]))
        return name

    return make
