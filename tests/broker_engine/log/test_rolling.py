"""When a segment is full: by size, by time with and without jitter, by either index."""

from __future__ import annotations

import pytest

from broker_engine.config import BrokerConfig, TopicConfig
from broker_engine.log.config import LogConfig
from broker_engine.log.files import Files
from broker_engine.log.index import TIME_ENTRY
from broker_engine.log.memory_files import MemoryFiles
from broker_engine.log.segment import TIME_INDEX_SUFFIX, segment_path
from broker_engine.server.topic_settings import log_config
from broker_engine.simulator.sim_clock import SimRandomness
from tests.broker_engine.log.harness import DIRECTORY, LogHarness, numbered


def test_segments_roll_by_time(files: Files) -> None:
    harness = LogHarness(files, LogConfig(segment_ms=1000))
    harness.append(b"a")
    harness.clock.time_ms += 1000
    harness.append(b"b")
    assert harness.log.segment_count == 1
    harness.clock.time_ms += 1
    harness.append(b"c")
    assert harness.log.segment_count == 2


def test_segments_roll_when_the_offset_index_is_full(files: Files) -> None:
    harness = LogHarness(files, LogConfig(index_interval_bytes=1, segment_index_bytes=36))
    for value in numbered(12):
        harness.append(value)  # all of one time: that index has one entry
    assert harness.log.segment_count == 3


def test_segments_roll_when_the_time_index_is_full(files: Files) -> None:
    """Of four entries of 12 bytes the last is kept for sealing; six of the offset index would fit."""
    harness = LogHarness(files, LogConfig(index_interval_bytes=1, segment_index_bytes=48))
    for value in numbered(12):
        harness.clock.time_ms += 1
        harness.append(value)
    assert harness.log.segment_count == 3
    bases = harness.log.segment_bases
    assert [time_entry_count(files, base) for base in bases[:-1]] == [3, 3]


def test_the_time_index_has_room_for_the_entry_that_sealing_adds(files: Files) -> None:
    harness = LogHarness(files, LogConfig(index_interval_bytes=100, segment_index_bytes=48))
    while harness.log.segment_count == 1:
        harness.clock.time_ms += 1
        harness.append(b"a batch of less than 100 bytes")
    assert time_entry_count(files, 0) <= 4


def time_entry_count(files: Files, base_offset: int) -> int:
    return len(files.read_small(segment_path(DIRECTORY, base_offset, TIME_INDEX_SUFFIX))) // TIME_ENTRY.size


def age_ms_at_roll(harness: LogHarness) -> int:
    """How old the active segment becomes, a millisecond at a time."""
    harness.append(b"first")
    started_ms, count = harness.clock.time_ms, harness.log.segment_count
    while harness.log.segment_count == count:
        harness.clock.time_ms += 1
        harness.append(b"next")
    return harness.clock.time_ms - started_ms


@pytest.mark.parametrize(("share", "rolls_after_ms"), [(0.0, 100), (0.25, 90), (0.999, 61)])
def test_jitter_rolls_a_segment_earlier_by_its_own_share(files: Files, share: float, rolls_after_ms: int) -> None:
    harness = LogHarness(files, LogConfig(segment_ms=100, segment_jitter_ms=40), jitter=lambda: share)
    assert age_ms_at_roll(harness) == rolls_after_ms + 1


def test_jitter_above_the_time_itself_counts_as_that(files: Files) -> None:
    harness = LogHarness(files, LogConfig(segment_ms=100, segment_jitter_ms=1 << 62), jitter=lambda: 0.5)
    assert age_ms_at_roll(harness) == 51


def test_every_segment_draws_anew_and_keeps_it_when_it_is_cut(files: Files) -> None:
    shares = iter([0.5, 0.1, 0.9, 0.2])
    harness = LogHarness(files, LogConfig(segment_ms=100, segment_jitter_ms=100), jitter=lambda: next(shares))
    assert age_ms_at_roll(harness) == 51
    harness.log.close()
    harness.open()
    harness.append(b"cut off")
    harness.log.truncate_to(harness.log.log_end_offset - 1)
    assert age_ms_at_roll(harness) == 11


def test_without_jitter_nothing_is_drawn() -> None:
    def drawn() -> float:
        raise AssertionError("a simulation's seed would tell another story")

    harness = LogHarness(MemoryFiles(), LogConfig(segment_ms=10), jitter=drawn)
    assert age_ms_at_roll(harness) == 11


def test_one_seed_gives_the_same_rolls() -> None:
    def ages_ms(seed: str) -> list[int]:
        config = LogConfig(segment_ms=100, segment_jitter_ms=90)
        harness = LogHarness(MemoryFiles(), config, jitter=SimRandomness(seed).unit)
        return [age_ms_at_roll(harness) for _ in range(5)]

    assert ages_ms("one") == ages_ms("one")
    assert ages_ms("one") != ages_ms("two")
    assert len(set(ages_ms("one"))) > 1


@pytest.mark.parametrize("given", [{"log.roll.jitter.ms": "7200000"}, {"log.roll.jitter.hours": "2"}])
def test_the_brokers_jitter_is_the_default_of_topics(given: dict[str, str]) -> None:
    broker = BrokerConfig.load(given)
    assert log_config(TopicConfig.resolve({}, broker)).segment_jitter_ms == 7_200_000
    assert log_config(TopicConfig.resolve({"segment.jitter.ms": "5"}, broker)).segment_jitter_ms == 5
