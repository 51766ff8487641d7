"""The scrubber on real logs: rot in a sealed segment is found while everything else is served."""

from __future__ import annotations

from pathlib import Path
from typing import cast

import pytest

from broker_engine.errors import BrokerError, ErrorCode
from broker_engine.log.results import LogState
from broker_engine.server.partitions import Partitions
from broker_engine.server.scrubber import Scrubber
from tests.broker_engine.server.test_compactor import CompactedPartition, Held


async def test_rot_in_a_sealed_segment_is_found_counted_once_and_not_served(tmp_path: Path) -> None:
    sound, rotten = CompactedPartition(tmp_path, "sound"), CompactedPartition(tmp_path, "rotten")
    for partition in (sound, rotten):
        partition.put(b"a", 3)
        partition.put(b"a", 3)
    path = min((tmp_path / "rotten").rglob("*.log"))
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
    scrubber = Scrubber(cast(Partitions, Held([sound.local(), rotten.local()])), bytes_per_s_max=1 << 30)
    for _ in range(2):
        await scrubber.verify_all()
    assert scrubber.damaged_count == 1
    assert (sound.harness.log.state, rotten.harness.log.state) == (LogState.ONLINE, LogState.DAMAGED)
    with pytest.raises(BrokerError) as raised:
        rotten.harness.fetch(2)
    assert raised.value.code is ErrorCode.KAFKA_STORAGE_ERROR
    assert [record.offset for record in rotten.harness.records(3)] == [3, 4, 5]
