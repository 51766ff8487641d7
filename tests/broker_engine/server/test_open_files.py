"""The limit of open files: taken as far as the system allows, and shared with connections."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.broker_engine.broker_process import BrokerProcess
from tests.broker_engine.handlers.calls import batch_of, create, fetch, produce, values_of
from tests.broker_engine.raw_client import RawClient

_SHOW = """
import resource, sys
from broker_engine.server.open_files import allowed_to_logs, raise_limit
resource.setrlimit(resource.RLIMIT_NOFILE, (int(sys.argv[1]), int(sys.argv[2])))
raise_limit()
print(resource.getrlimit(resource.RLIMIT_NOFILE)[0], allowed_to_logs())
"""


@pytest.mark.parametrize(("soft", "hard", "shown"), [(1024, 8000, "8000 6000"), (256, 256, "256 192")])
def test_all_that_the_system_allows_is_taken_and_a_quarter_left_to_others(soft: int, hard: int, shown: str) -> None:
    command = [sys.executable, "-c", _SHOW, str(soft), str(hard)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.strip() == shown


class FewFiles(BrokerProcess):
    def command(self) -> list[str]:
        return ["prlimit", "--nofile=300:300", *super().command()]


def test_more_partitions_than_files_may_be_open(tmp_path: Path) -> None:
    with FewFiles(tmp_path / "broker") as broker, RawClient(broker.address()) as client:
        topic = create(client, partitions=400)
        for index in (*range(400), *range(400)):
            assert produce(client, topic, batch_of(b"x"), partition=index, acks=1).error_code == 0
        assert values_of(fetch(client, topic, partition=7, max_wait_ms=5000, min_bytes=130)) == [b"x", b"x"]
        assert "Too many open files" not in broker.log
