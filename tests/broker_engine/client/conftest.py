"""One real broker per test module, with its SETTINGS; topics are the tests' own: nothing needs to be cleaned up."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack

import pytest

from broker_engine.client import Admin, Client, ClientConfig, NewTopic, raise_errors
from tests.broker_engine.broker_process import BrokerProcess
from tests.broker_engine.client.reading import MakeTopic

_numbers = itertools.count()


@pytest.fixture(scope="module")
def broker(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    settings = getattr(request.module, "SETTINGS", None)
    with BrokerProcess(tmp_path_factory.mktemp("broker") / "data", settings=settings) as broker:
        yield broker


@pytest.fixture
async def client(broker: BrokerProcess) -> AsyncIterator[Client]:
    async with Client(ClientConfig(bootstrap=(broker.address(),), retry_backoff_ms=20)) as client:
        yield client


@pytest.fixture
async def members(client: Client) -> AsyncIterator[AsyncExitStack]:
    """Closed before their client is."""
    async with asyncio.timeout(60), AsyncExitStack() as stack:
        yield stack


@pytest.fixture
def make_topic(client: Client) -> MakeTopic:
    async def make(partitions: int = 1, **configs: str) -> str:
        name = f"topic-{next(_numbers)}"
        named = {key.replace("_", "."): value for key, value in configs.items()}
        raise_errors(await Admin(client).create_topics([NewTopic(name, partitions, 1, named)]))
        return name

    return make
