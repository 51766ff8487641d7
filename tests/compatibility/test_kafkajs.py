"""kafkajs, unmodified: creates a topic and produces (it cannot consume without a group)."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

from tests.compatibility.conftest import Access

KAFKAJS = Path(__file__).parent / "kafkajs"


def test_kafkajs_produces(access: Access, topic: str) -> None:
    environment = {**os.environ, "BOOTSTRAP": access.bootstrap, "TOPIC": topic, "COUNT": "100"}
    environment |= {"KAFKAJS_NO_PARTITIONER_WARNING": "1"}
    if access.username is not None and access.password is not None:
        environment |= {"USERNAME": access.username, "PASSWORD": access.password}
    done = subprocess.run(
        ["node", "produce.js"], cwd=KAFKAJS, env=environment, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert [(entry["partition"], entry["baseOffset"]) for entry in result["sent"]] == [(0, "0")]
    assert result["offsets"] == [{"partition": 0, "offset": "100", "high": "100", "low": "0"}]
