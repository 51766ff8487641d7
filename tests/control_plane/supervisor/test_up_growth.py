"""A home that one broker made, grown to three: every record is there, three times."""

from __future__ import annotations

import asyncio
import re
import signal
import tarfile
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from broker_engine.client import Admin, Client, ClientConfig, PlainCredentials
from control_plane.supervisor.plan import INTERNAL, PORT_SPAN
from tests.control_plane.supervisor.running import REPOSITORY, Up, api_key
from tests.ports import own_port, own_port_row

OLD_DIRECTORY = REPOSITORY / "tests/broker_engine/fixtures/single_broker_590dd12.tar.gz"
RECORDS = [f"record {number}" for number in range(50)]


@pytest.fixture
def up(tmp_path: Path) -> Iterator[Up]:
    up = Up(tmp_path / "home", own_port(), own_port_row(PORT_SPAN))
    yield up
    if up.process is not None:
        up.stop()


def url(up: Up, path: str) -> str:
    return f"http://127.0.0.1:{up.http_port}/api/v1/{path}"


def read_all(up: Up, partitions: int = 3) -> list[str]:
    found: list[str] = []
    for partition in range(partitions):
        path = url(up, f"topics/hello/partitions/{partition}/records")
        answer = httpx.get(path, auth=api_key(up), params={"offset": 0, "max_records": 1000}).json()
        found += [record["value"]["data"] for record in answer["records"]]
    return found


def replicas_of(up: Up, topic: str) -> list[tuple[int, ...]]:
    return asyncio.run(_replicas_of(up, topic))


def _root_config(up: Up) -> ClientConfig:
    sasl = PlainCredentials("control-plane", (up.home / "cluster-secret").read_text().strip())
    return ClientConfig(bootstrap=(f"127.0.0.1:{up.kafka_port + INTERNAL}",), sasl=sasl)


async def _replicas_of(up: Up, topic: str) -> list[tuple[int, ...]]:
    async with Client(_root_config(up)) as client:
        view = (await Admin(client).list_topics())[topic]
        return [view.partitions[index].replicas for index in sorted(view.partitions)]


def test_one_broker_grows_to_three_and_keeps_every_record(up: Up) -> None:
    up.start("--brokers", "1")
    up.wait_for("Ctrl-C stops everything")
    sent = httpx.post(url(up, "topics/hello/records"), auth=api_key(up), json=[{"value": it} for it in RECORDS])
    assert sent.status_code == 200, sent.text
    assert replicas_of(up, "demo/hello") == [(1,)] * 3
    assert up.stop(signal.SIGTERM) == 0

    up.start("--brokers", "3")
    up.wait_for("Ctrl-C stops everything")
    assert re.search(r"each is on 3 brokers: ok \(\d", up.output), up.output
    assert [sorted(replicas) for replicas in replicas_of(up, "demo/hello")] == [[1, 2, 3]] * 3
    assert sorted(read_all(up)) == sorted(RECORDS)

    # Any of the three may go now, the one that was there first included.
    first = next(child for child in up.children() if "broker-1" in " ".join(child.cmdline()))
    first.kill()
    again = httpx.post(url(up, "topics/hello/records"), auth=api_key(up), json=[{"value": "later"}], timeout=30)
    assert again.status_code == 200, again.text


def test_a_directory_from_before_there_were_clusters_grows_too(up: Up) -> None:
    directory = up.home / "broker-1"
    directory.mkdir(parents=True)
    with tarfile.open(OLD_DIRECTORY) as archive:
        archive.extractall(directory, filter="data")
    up.start()
    up.wait_for("Ctrl-C stops everything")
    assert re.search(r"each is on 3 brokers: ok", up.output), up.output
    assert [sorted(replicas) for replicas in replicas_of(up, "orders")] == [[1, 2, 3]] * 3
    assert asyncio.run(_record_count(up, "orders", partitions=3)) == 60


async def _record_count(up: Up, topic: str, partitions: int) -> int:
    async with Client(_root_config(up)) as client:
        ends = await Admin(client).list_offsets({(topic, index): "latest" for index in range(partitions)})
        return sum(found.offset for found in ends.values())
