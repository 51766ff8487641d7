"""Coordinators and leaders tell separately: what comes of it when both are heard, and when they cannot be matched."""

from __future__ import annotations

import pytest

from control_plane.groups.queries import Doubt, GroupTruth, PartitionTruth, commit_rate, truth_of, truths_of
from control_plane.live.group_book import EVENTS_KEPT, HISTORIES_MAX, SAMPLES_KEPT, STALE_AFTER_S, Sample
from tests.api.telling import Stream, member

NOW_MS = 2_000_000
ME = ("app", "/10.0.0.1")


@pytest.fixture
def stream() -> Stream:
    stream = Stream()
    stream.partition()
    return stream


def truth(stream: Stream, name: str = "readers") -> GroupTruth:
    found = truth_of(stream.snapshot, "demo", name, NOW_MS)
    assert found is not None
    return found


def only_row(stream: Stream, name: str = "readers") -> PartitionTruth:
    [row] = truth(stream, name).partitions
    return row


def test_the_one_reader_of_the_owners_name_is_the_owner(stream: Stream) -> None:
    stream.group(members=[member("m-1", 0)])
    stream.offset(40)
    stream.readers((*ME, 55, 1), ("other", "/10.0.0.1", 99, 1))
    row = only_row(stream)
    assert (row.position, row.doubt, row.repeat_count) == (55, None, 15)


def test_two_connections_of_the_owners_name_are_not_told_apart(stream: Stream) -> None:
    stream.group(members=[member("m-1", 0)])
    stream.readers((*ME, 55, 2))
    assert (only_row(stream).position, only_row(stream).doubt) == (None, Doubt.AMBIGUOUS)


def test_owners_of_two_groups_with_one_name_are_not_told_apart(stream: Stream) -> None:
    stream.group(members=[member("m-1", 0)])
    stream.group("others", members=[member("m-2", 0)])
    stream.readers((*ME, 55, 1))
    assert only_row(stream).doubt is Doubt.AMBIGUOUS
    assert only_row(stream, "others").doubt is Doubt.AMBIGUOUS


def test_two_members_of_one_name_are_told_apart_by_what_they_own(stream: Stream) -> None:
    stream.partition(partition=1)
    stream.group(members=[member("m-1", 0), member("m-2", 1)])
    stream.readers((*ME, 55, 1))
    stream.readers((*ME, 66, 1), partition=1)
    assert [row.position for row in truth(stream).partitions] == [55, 66]


def test_who_does_not_fetch_and_who_does_not_own_has_no_position(stream: Stream) -> None:
    stream.group(members=[member("m-1", 0)])
    stream.offset(40)
    stream.offset(7, partition=1)
    assert [row.doubt for row in truth(stream).partitions] == [Doubt.NOT_SEEN, Doubt.NO_OWNER]


def test_an_owned_partition_without_a_commit_is_shown(stream: Stream) -> None:
    stream.group(members=[member("m-1", 0)])
    row = only_row(stream)
    assert (row.committed, row.lag, row.verdict.words) == (None, None, "Nothing was committed yet.")


def test_an_empty_partition_without_a_commit_is_no_trouble(stream: Stream) -> None:
    stream.partition(partition=1, high_watermark=0, last_stable_offset=0)
    stream.group(members=[member("m-1", 0, 1)])
    stream.offset(100)
    found = truth(stream)
    empty = found.partitions[1]
    assert (empty.committed, empty.lag, empty.lag_s, empty.verdict.status) == (None, 0, 0.0, "ok")
    assert (found.status, found.words) == ("ok", "Everything is read.")


def test_lag_in_seconds_is_the_age_of_the_first_unread_record(stream: Stream) -> None:
    stream.group()
    stream.offset(40, unread_ms=NOW_MS - 90_000)
    assert (only_row(stream).lag, only_row(stream).lag_s) == (60, 90.0)


def test_where_all_is_read_the_age_of_what_was_unread_before_does_not_count(stream: Stream) -> None:
    stream.group()
    stream.offset(100, unread_ms=NOW_MS - 90_000)
    assert (only_row(stream).lag, only_row(stream).lag_s) == (0, 0.0)


def test_a_lag_that_nobody_has_dated_has_no_seconds(stream: Stream) -> None:
    stream.group()
    stream.offset(40, unread_ms=-2)
    assert (only_row(stream).lag, only_row(stream).lag_s) == (60, None)


def test_a_new_commit_keeps_the_former_time_until_it_was_looked_up(stream: Stream) -> None:
    stream.group()
    stream.offset(40, unread_ms=NOW_MS - 90_000)
    stream.now_s += 1
    stream.offset(50, unread_ms=-2, at_ms=2)
    assert only_row(stream).lag_s == 90.0
    stream.now_s += 10
    stream.offset(60, unread_ms=-2, at_ms=3)
    assert only_row(stream).lag_s is None, "but not for long"


def test_a_group_says_in_words_how_it_is(stream: Stream) -> None:
    stream.group(members=[member("m-1", 0)])
    assert truth(stream).words == "Nothing was committed yet."
    stream.offset(95, commit_ms=NOW_MS, unread_ms=NOW_MS - 3_000)
    assert truth(stream).words == "5 records to read, the oldest for 3 s."
    stream.offset(100, commit_ms=NOW_MS, at_ms=2)
    assert truth(stream).words == "Everything is read."
    stream.group(at_ms=2)
    stream.offset(40, commit_ms=1, unread_ms=NOW_MS - 400_000, at_ms=3)
    assert truth(stream).words == "Nobody is in the group: 60 records wait, the oldest for 6 min."
    stream.group(members=[member("m-1", 0)], at_ms=3)
    assert truth(stream).words == "Nothing was committed for 33 min, and 60 records wait, the oldest for 6 min."


def test_an_offset_of_a_topic_that_was_made_anew_is_left_out(stream: Stream) -> None:
    stream.group()
    stream.offset(40, topic_id="the-old-one")
    assert truth(stream).partitions == []


def test_a_deposed_coordinators_late_word_changes_nothing(stream: Stream) -> None:
    stream.group(coordinator_epoch=3, broker=2)
    stream.offset(40, coordinator_epoch=3)
    stream.group(coordinator_epoch=2, state="Empty", at_ms=99)
    stream.offset(10, coordinator_epoch=2, at_ms=99)
    found = truth(stream)
    assert (found.page.told.coordinator, found.page.told.state, found.lag) == (2, "Stable", 60)


def test_what_was_deleted_is_gone(stream: Stream) -> None:
    stream.group()
    stream.offset(40)
    stream.offset(40, is_deleted=True, at_ms=2)
    assert truth(stream).partitions == []
    stream.group(is_deleted=True, at_ms=2)
    assert truths_of(stream.snapshot, "demo", NOW_MS) == []


def test_what_nobody_repeats_is_gone(stream: Stream) -> None:
    stream.group()
    stream.now_s += STALE_AFTER_S
    assert truths_of(stream.snapshot, "demo", NOW_MS) == []


def test_the_worst_partition_speaks_for_the_group(stream: Stream) -> None:
    stream.partition(partition=1)
    stream.group()
    stream.offset(100, commit_ms=NOW_MS)
    stream.offset(40, partition=1, commit_ms=1, unread_ms=1)
    found = truth(stream)
    assert found.status == "stop"
    assert found.worst_partition is not None
    assert found.worst_partition.partition == 1


def test_commits_per_second_are_made_of_running_totals(stream: Stream) -> None:
    stream.group()
    stream.offset(40, commit_count=25)
    told = only_row(stream).committed
    samples = (Sample(NOW_MS - 10_000, 0, 0, 0, 5), Sample(NOW_MS - 5_000, 0, 0, 0, 15))
    assert commit_rate(samples, told, NOW_MS) == 2.0
    assert commit_rate((Sample(NOW_MS - 9_000, 0, 0, 0, 900), *samples[1:]), told, NOW_MS) == 2.0, "counted anew"
    assert commit_rate((), told, NOW_MS) is None


def test_histories_are_bounded(stream: Stream) -> None:
    events = [
        {"at_ms": 1000 * number, "kind": "joined", "member": "m", "client_id": "c", "generation": 1, "duration_ms": -1,
         "moved_count": -1}
        for number in range(EVENTS_KEPT + 20)
    ]  # fmt: skip
    for number in range(len(events)):
        stream.group(events=events[max(0, number - 19) : number + 1], at_ms=number)
    stream.offset(40)
    for tick in range(3 * SAMPLES_KEPT):
        stream.snapshot.sample_groups(1 + tick * 15_000)
    page = truth(stream).page
    assert len(page.events) == EVENTS_KEPT
    assert len(page.samples["orders", 0]) == SAMPLES_KEPT
    assert HISTORIES_MAX > 0


def test_a_history_does_not_call_a_lag_young_that_nobody_has_dated(stream: Stream) -> None:
    stream.group()
    for tick, (offset, unread_ms) in enumerate(((40, -2), (50, NOW_MS - 90_000), (100, -1))):
        stream.offset(offset, unread_ms=unread_ms, at_ms=1 + tick)
        stream.snapshot.sample_groups(NOW_MS + 5_000 * tick)
    points = [(point.records, point.seconds) for point in truth(stream).lag_history]
    assert points == [(60, None), (50, 95.0), (0, 0.0)]


def test_a_topic_that_was_made_anew_begins_a_history_of_its_own(stream: Stream) -> None:
    stream.group()
    stream.offset(90, unread_ms=NOW_MS - 90_000)
    stream.snapshot.sample_groups(NOW_MS)
    stream.partition(topic_id="new", high_watermark=500, at_ms=2, leader_epoch=4)
    stream.snapshot.sample_groups(NOW_MS + 20_000)
    page = truth(stream).page
    assert [point.records for point in page.lag] == [10], "an old offset says nothing of the new topic"
    stream.offset(95, topic_id="new", unread_ms=-2, at_ms=3)
    stream.snapshot.sample_groups(NOW_MS + 40_000)
    page = truth(stream).page
    assert [(point.records, point.seconds) for point in page.lag] == [(10, 90.0), (405, None)]
    assert [sample.offset for sample in page.samples["orders", 0]] == [95]
