"""What was aborted stays so, whichever batch of the transaction rots, before it is mended and after."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from broker_engine.log.config import LogConfig
from broker_engine.log.memory_files import MemoryFiles
from broker_engine.log.segment import TXN_INDEX_SUFFIX
from broker_engine.log.txn_index import AbortedTransaction
from broker_engine.records.header import HEADER_SIZE_BYTES
from tests.broker_engine.log.harness import DIRECTORY
from tests.broker_engine.log.test_txn_index import TransactionalLog

KIND_FROM_END = 9
"""Where a marker's batch says whether it commits."""


class Rotting(TransactionalLog):
    """0 committed by 1; 2, 3 aborted by 4; 5 committed by 6; 7 aborted by 8. In one segment, or in several."""

    def __init__(self, segment_bytes: int) -> None:
        self.files = MemoryFiles()
        super().__init__(self.files)
        self.harness.config = self.log.config = LogConfig(segment_bytes=segment_bytes)
        for count, is_commit in ((1, True), (2, False), (1, True), (1, False)):
            for _ in range(count):
                self.send(1)
            self.end(1, is_commit=is_commit)
        self.harness.flush()
        assert [each.last_offset for each in self.expected] == [4, 8]

    def aborted(self) -> list[AbortedTransaction]:
        return self.log.aborted_transactions(0, 9)

    def rot(self, offset: int) -> bytes:
        """A bit of the batch at this offset flips, and the broker starts again. What the batch was."""
        segment = self.log._segments_from(offset)[0]
        batch = segment.locate(offset)
        assert batch is not None
        sound, path = segment.read_batch(batch), segment.path(".log")
        self.log.close()
        self.files._files[path].data[batch.position + HEADER_SIZE_BYTES + 4] ^= 1
        for name in self.files.list_dir(DIRECTORY):
            if name.endswith((".index", ".timeindex")):  # so that every segment is looked at
                self.files.unlink(f"{DIRECTORY}/{name}")
        self.harness.open(recovery_point=9)
        return sound

    def restart(self) -> None:
        self.log.close()
        self.harness.open(recovery_point=9)

    def mend(self, patch: bytes) -> None:
        (hole,) = self.log.holes
        self.log.roll()
        base_offset = max(base for base in self.log.segment_bases if base <= hole.start_offset)
        mending = self.log.mending_of(base_offset, {hole: patch})
        assert mending is not None
        mending.clean()
        assert not mending.job.has_failed
        assert self.log.swap_in(mending) is not None
        mending.finish()
        self.log.settle(mending)
        self.log.on_mended(mending.patched())
        mending.release()
        assert not self.log.holes


@pytest.fixture(params=[1 << 20, 400], ids=["one segment", "several"])
def rotting(request: pytest.FixtureRequest) -> Rotting:
    return Rotting(request.param)


@pytest.mark.parametrize("offset", range(9))
def test_a_restart_with_a_rotten_batch_forgets_no_abort(rotting: Rotting, offset: int) -> None:
    patch = rotting.rot(offset)
    assert rotting.aborted() == rotting.expected
    rotting.restart()
    assert rotting.aborted() == rotting.expected
    rotting.mend(patch)
    assert rotting.aborted() == rotting.expected


def forget(rotting: Rotting) -> None:
    """As a broker did that built the index anew from what it could read."""
    for segment in rotting.log._segments:
        segment.txn_index.replace([each for each in segment.txn_index.entries() if each.last_offset != 4])


def tear(rotting: Rotting) -> None:
    rotting.log.close()
    for name in rotting.files.list_dir(DIRECTORY):
        if name.endswith(TXN_INDEX_SUFFIX):
            rotting.files.write_atomic(f"{DIRECTORY}/{name}", b"torn", is_durable=True)
    rotting.harness.open(recovery_point=9)


@pytest.mark.parametrize("lose", [forget, tear])
def test_an_index_that_lost_an_abort_to_a_hole_has_it_again_when_that_is_mended(
    rotting: Rotting, lose: Callable[[Rotting], None]
) -> None:
    patch = rotting.rot(4)
    lose(rotting)
    assert 4 not in [each.last_offset for each in rotting.aborted()]
    rotting.mend(patch)
    assert rotting.aborted()[0] == rotting.expected[0]


@pytest.mark.parametrize("offset", [1, 4, 6, 8])
def test_a_marker_that_does_not_verify_changes_nothing_in_an_index_that_is_made_anew(
    rotting: Rotting, offset: int
) -> None:
    """Nobody has noticed yet: the batch that says how a transaction ended is not what was written."""
    segment = rotting.log._segments_from(offset)[0]
    batch = segment.locate(offset)
    assert batch is not None
    rotting.files._files[segment.path(".log")].data[batch.end_position - KIND_FROM_END] ^= 1
    rotting.log.find_aborted_again()
    assert rotting.aborted() == rotting.expected
