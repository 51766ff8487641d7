"""Offset checkpoints in Kafka's text format: they parse, or they are ignored."""

from __future__ import annotations

import pytest

from broker_engine.log.files import MemoryFiles
from broker_engine.names import ROOT, Name
from broker_engine.server.checkpoints import RECOVERY_POINTS, format_checkpoint, parse_checkpoint, read_checkpoint

OFFSETS = {(Name(ROOT, "orders"), 0): 5, (Name(ROOT, "orders"), 11): 1 << 40, (Name("demo", "orders"), 0): 7}
KAFKAS_TEXT = b"0\n3\norders 0 5\norders 11 1099511627776\ndemo/orders 0 7\n"
"""Version, count, then one line per partition, as Kafka writes it; a tenant's topic by its physical name."""


def test_what_is_written_is_kafkas_format_and_reads_back() -> None:
    assert format_checkpoint(OFFSETS.items()) == KAFKAS_TEXT
    assert parse_checkpoint(KAFKAS_TEXT) == OFFSETS
    assert format_checkpoint([]) == b"0\n0\n"
    assert parse_checkpoint(b"0\n0\n") == {}


@pytest.mark.parametrize(
    "broken",
    [
        b"",
        b"0\n",
        b"1\n0\n",
        b"0\n2\norders 0 5\n",
        b"0\n1\norders 0\n",
        b"0\n1\norders zero 5\n",
        b"\xff\xfe",
        b"x\ny\n",
    ],
)
def test_a_checkpoint_that_does_not_parse_is_as_good_as_none(broken: bytes) -> None:
    files = MemoryFiles()
    assert read_checkpoint(files, RECOVERY_POINTS) == {}
    files.write_atomic(RECOVERY_POINTS, broken, is_durable=True)
    assert read_checkpoint(files, RECOVERY_POINTS) == {}
