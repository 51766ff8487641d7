"""A follower's log: the leader's batches as they are, nothing that does not fit, and a new beginning."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from broker_engine.log.config import LogConfig
from broker_engine.log.memory_files import MemoryFiles
from broker_engine.log.replica_log import ReplicaLog
from broker_engine.records.batch import CorruptBatch, parse_header
from broker_engine.records.header import BatchHeader
from broker_engine.records.replicated import check_replicated
from tests.broker_engine.log.harness import DIRECTORY, TOPIC_ID, LogHarness, ManualClock, numbered

SMALL = LogConfig(segment_bytes=400)


class Follower:
    def __init__(self, config: LogConfig | None = None) -> None:
        self.files = MemoryFiles()
        self.config = config or LogConfig()
        self.seen: list[BatchHeader] = []
        self.log = self.open()

    def open(self) -> ReplicaLog:
        self.log = ReplicaLog.open(self.files, DIRECTORY, self.config, ManualClock(), topic_id=TOPIC_ID)
        return self.log

    def take(self, data: bytes, *, leader_epoch: int = 9) -> bool:
        """Answers whether the bytes ended inside a batch."""
        view, log = memoryview(data), self.log
        news = check_replicated(
            view,
            next_offset=log.log_end_offset,
            epoch_min=log.last_record_epoch,
            epoch_max=leader_epoch,
            is_log_empty=log.log_start_offset == log.log_end_offset,
        )
        if news.headers and news.headers[0].base_offset < log.log_end_offset:
            log.begin_lower(news.headers[0].base_offset)
        log.append_replica(view, news.headers, news.start, self._on_written)
        return news.is_cut

    def _on_written(self, headers: Sequence[BatchHeader], position: int) -> None:
        self.seen += headers
        assert self.log.log_end_offset == headers[-1].next_offset, "told before the next segment begins"

    def catch_up(self, leader: LogHarness, *, max_bytes: int = 300) -> None:
        while self.log.log_end_offset < leader.log.log_end_offset:
            self.take(leader.fetch(self.log.log_end_offset, max_bytes=max_bytes))

    def all_bytes(self) -> bytes:
        return stored_bytes(self.files)


def stored_bytes(files: MemoryFiles) -> bytes:
    names = [name for name in files.list_dir(DIRECTORY) if name.endswith(".log")]
    return b"".join(files.read_small(f"{DIRECTORY}/{name}") for name in names)


def leader_with(count: int, *, epochs: Sequence[int] = (0,)) -> LogHarness:
    leader = LogHarness(MemoryFiles(), SMALL)
    for epoch in epochs:
        for value in numbered(count):
            leader.append(value, epoch=epoch)
    return leader


def test_a_follower_has_the_leaders_bytes_epochs_and_answers() -> None:
    leader = leader_with(8, epochs=(1, 4))
    follower = Follower(LogConfig(segment_bytes=700))
    follower.catch_up(leader)
    assert isinstance(leader.files, MemoryFiles)
    assert follower.all_bytes() == stored_bytes(leader.files)
    assert follower.log.epochs.entries == leader.log.epochs.entries == ((1, 0), (4, 8))
    assert follower.log.segment_count > 1
    assert [header.base_offset for header in follower.seen] == list(range(16))


def test_what_a_follower_took_over_is_there_after_a_restart() -> None:
    follower = Follower(SMALL)
    follower.catch_up(leader_with(8, epochs=(1, 4)))
    before = follower.all_bytes()
    follower.open()
    assert (follower.log.log_end_offset, follower.log.last_record_epoch) == (16, 4)
    assert follower.all_bytes() == before


def test_bytes_that_end_inside_a_batch_are_taken_up_to_it_and_say_that_there_is_more() -> None:
    leader = leader_with(2)
    data = leader.fetch(0)
    follower = Follower()
    assert follower.take(data[:-1])
    assert follower.log.log_end_offset == 1
    assert not follower.take(data)
    assert follower.log.log_end_offset == 2


def test_one_flipped_bit_keeps_a_batch_and_all_behind_it_out() -> None:
    data = bytearray(leader_with(1).fetch(0))
    data[-1] ^= 1
    follower = Follower()
    with pytest.raises(CorruptBatch):
        follower.take(bytes(data))
    assert follower.log.log_end_offset == 0


def test_a_batch_that_begins_inside_the_log_or_breaks_the_order_of_epochs_is_refused() -> None:
    follower = Follower()
    follower.catch_up(leader_with(2, epochs=(3,)))
    other = LogHarness(MemoryFiles(), SMALL)
    other.append(*numbered(3), epoch=5)
    with pytest.raises(CorruptBatch, match="begins at 0"):
        follower.take(other.fetch(0))
    older = leader_with(3, epochs=(2,))
    with pytest.raises(CorruptBatch, match="epoch 2"):
        follower.take(older.fetch(2))
    newer = leader_with(3, epochs=(10,))
    with pytest.raises(CorruptBatch, match="epoch 10"):
        follower.take(newer.fetch(2))
    assert follower.log.log_end_offset == 2


def test_gaps_that_compaction_left_on_the_leader_stay_gaps() -> None:
    leader = leader_with(3)
    data = leader.fetch(0)
    size_bytes = parse_header(data).size_bytes
    follower = Follower()
    follower.take(data[:size_bytes] + data[2 * size_bytes :])
    follower.take(data[2 * size_bytes :])
    assert follower.log.log_end_offset == 3
    assert [header.base_offset for header in follower.log.iter_headers()] == [0, 2]


def test_a_cut_at_the_border_of_a_segment_leaves_the_end_there() -> None:
    follower = Follower(SMALL)
    follower.catch_up(leader_with(9))
    border = follower.log.segment_bases[-1]
    follower.log.truncate_to(border)
    assert follower.log.log_end_offset == border
    assert follower.open().log_end_offset == border


def test_an_epoch_whose_records_were_cut_off_is_forgotten() -> None:
    follower = Follower(SMALL)
    follower.catch_up(leader_with(4, epochs=(1, 4)))
    follower.log.truncate_to(4)
    assert (follower.log.latest_epoch, follower.log.last_record_epoch) == (1, 1)
    follower.catch_up(leader_with(4, epochs=(1, 3)))
    assert follower.log.epochs.entries == ((1, 0), (3, 4))


def test_an_epoch_that_was_noted_for_a_batch_which_a_crash_took_does_not_stand_in_the_way() -> None:
    follower = Follower(SMALL)
    follower.catch_up(leader_with(4, epochs=(1,)))
    follower.log.start_epoch(7)
    follower.take(leader_with(4, epochs=(1, 3)).fetch(4))
    assert follower.log.epochs.entries == ((1, 0), (3, 4))


def test_a_log_that_begins_anew_is_empty_where_the_leaders_starts_and_stays_so() -> None:
    follower = Follower(SMALL)
    follower.catch_up(leader_with(9, epochs=(1, 2)))
    follower.log.begin_anew(100)
    for log in (follower.log, follower.open()):
        assert (log.log_start_offset, log.log_end_offset, log.durable_end_offset) == (100, 100, 100)
        assert (log.latest_epoch, log.last_record_epoch, log.segment_count) == (-1, -1, 1)
    assert follower.all_bytes() == b""


def test_after_a_new_beginning_the_leaders_batches_follow() -> None:
    leader = leader_with(9, epochs=(1, 2))
    follower = Follower(SMALL)
    follower.log.begin_anew(12)
    follower.catch_up(leader)
    assert [header.base_offset for header in follower.log.iter_headers()] == list(range(12, 18))
    assert follower.log.epochs.entries == ((2, 12),)


def test_a_log_that_begins_inside_a_batch_of_its_leader_takes_that_batch_whole() -> None:
    leader = LogHarness(MemoryFiles(), SMALL)
    leader.append(*numbered(10), epoch=1)
    leader.append(b"next", epoch=1)
    follower = Follower(SMALL)
    follower.log.begin_anew(7)
    follower.catch_up(leader)
    follower.log.delete_records_before(7)
    for log in (follower.log, follower.open()):
        assert log.log_end_offset == 11
        assert [header.base_offset for header in log.iter_headers()] == [0, 10]
        assert log.epochs.entries == ((1, 0),)
    assert follower.log.durable_end_offset == 11


@pytest.mark.parametrize(("byte", "bit"), [(7, 3), (15, 0)], ids=["offset", "epoch"])
def test_the_last_batch_of_an_answer_is_not_believed_where_only_the_next_could_contradict_it(
    byte: int, bit: int
) -> None:
    """No CRC covers its offset and epoch. As the first of the next answer the leader has looked at it twice."""
    leader, follower = LogHarness(MemoryFiles()), Follower()
    for value in numbered(3):
        leader.append(value)
    data = bytearray(leader.fetch(0))
    size_bytes = len(data) // 3
    data[size_bytes + byte] ^= 1 << bit
    assert follower.take(bytes(data[: 2 * size_bytes])), "there is more where this came from"
    assert follower.log.log_end_offset == 1
    with pytest.raises(CorruptBatch):
        follower.take(bytes(data))
