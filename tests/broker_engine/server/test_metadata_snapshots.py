"""Snapshots of the metadata: whole or not at all, and the same image on the other side."""

from __future__ import annotations

import dataclasses
import random
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from broker_engine.clock import SystemClock
from broker_engine.errors import BrokerError
from broker_engine.log.files import MemoryFiles
from broker_engine.metadata.image import EMPTY_IMAGE, MetadataImage
from broker_engine.metadata.records import (
    ConfigRecord,
    FeatureLevelRecord,
    PartitionRecord,
    Record,
    TopicRecord,
    VoterField,
    VotersRecord,
    encode_record,
)
from broker_engine.quorum.election_state import ElectionState, VoterKey, encode_election_state
from broker_engine.quorum.log_index import LogPosition
from broker_engine.quorum.ready import Entry
from broker_engine.quorum.state import DEFAULT_TIMING
from broker_engine.server.metadata_log import DIRECTORY, MetadataLog
from broker_engine.server.metadata_recovery import Recovered, recover
from broker_engine.server.metadata_snapshots import (
    MetadataSnapshots,
    SnapshotError,
    decode_snapshot,
    encode_snapshot,
)
from broker_engine.server.raft_node import QUORUM_STATE

ME = VoterKey(1, UUID(int=11))
VOTERS = VotersRecord(voters=[VoterField(voter_id=1, directory_id=ME.directory_id)])


def image_with(topic_count: int, seed: int = 0) -> MetadataImage:
    dice = random.Random(seed)
    records: list[Record] = [FeatureLevelRecord(name="highwater.metadata", level=1), VOTERS]
    for number in range(topic_count):
        topic_id = UUID(int=dice.getrandbits(128))
        records.append(TopicRecord(name=f"topic-{number}", topic_id=topic_id))
        replicas = [1, 2, 3]
        records.append(PartitionRecord(topic_id=topic_id, replicas=replicas, isr=replicas, leader=1))
        if dice.random() < 0.5:
            records.append(ConfigRecord(resource_name=f"topic-{number}", name="retention.ms", value="1000"))
    return EMPTY_IMAGE.replay(records, 0)


def names(image: MetadataImage) -> list[str]:
    return sorted(topic.name.name for topic in image.topics.values())


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2500), st.integers(0, 1 << 32))
def test_an_image_survives_its_snapshot(topic_count: int, seed: int) -> None:
    image = image_with(min(topic_count, 40) if topic_count % 7 else topic_count, seed)
    position = LogPosition(3, image.next_offset + 5)
    loaded = decode_snapshot(encode_snapshot(image, 0), position).image
    assert loaded == dataclasses.replace(image, next_offset=position.end_offset)


def test_equal_images_give_equal_bytes_in_whatever_order_they_came_about() -> None:
    assert encode_snapshot(image_with(9), 7) == encode_snapshot(image_with(9), 7)


@given(st.data())
def test_a_damaged_snapshot_is_refused_whole(data: st.DataObject) -> None:
    whole = encode_snapshot(image_with(5), 0)
    damaged = bytearray(whole)
    match data.draw(st.sampled_from(["flip", "cut", "more"])):
        case "flip":
            at = data.draw(st.integers(0, len(whole) - 1))
            damaged[at] ^= 1 << data.draw(st.integers(0, 7))
        case "cut":
            del damaged[data.draw(st.integers(0, len(whole) - 1)) :]
        case "more":
            damaged += b"\x00" * data.draw(st.integers(1, 100))
    try:
        image = decode_snapshot(bytes(damaged), LogPosition(1, 50)).image
    except SnapshotError:
        return
    # The first 21 bytes of a batch are under no checksum; of these only the offset means anything, and not here.
    assert image == dataclasses.replace(image_with(5), next_offset=50)


class Disk:
    """A node's metadata directory."""

    def __init__(self) -> None:
        self.files = MemoryFiles()
        self.files.make_dirs(DIRECTORY)

    def write_log(self, count: int, *, epoch: int = 1, start: int = 0) -> None:
        """One topic an entry, the voters first."""
        log = MetadataLog.open(self.files, SystemClock())
        for number in range(start, start + count):
            record = VOTERS if number == 0 else TopicRecord(name=f"topic-{number}", topic_id=UUID(int=number))
            log.append(Entry(epoch, log.end_offset, (encode_record(record),)))
        log.close()
        self.files.write_atomic(QUORUM_STATE, encode_election_state(ElectionState(epoch)), is_durable=True)

    def write_snapshot(self, end_offset: int, *, epoch: int = 1) -> str:
        records = [VOTERS, *(TopicRecord(name=f"topic-{n}", topic_id=UUID(int=n)) for n in range(1, end_offset))]
        image = EMPTY_IMAGE.replay(records, 0)
        MetadataSnapshots(self.files).write(LogPosition(epoch, end_offset), encode_snapshot(image, 0))
        return f"__cluster_metadata-0/{end_offset:020d}-{epoch:010d}.checkpoint"

    def damage(self, path: str) -> None:
        data = bytearray(self.files.read_small(path))
        data[len(data) // 2] ^= 1
        self.files.write_atomic(path, bytes(data), is_durable=True)

    def shorten(self, offset: int) -> None:
        log = MetadataLog.open(self.files, SystemClock())
        log.roll()
        log.close()
        log = MetadataLog.open(self.files, SystemClock())
        for deleted in log.take_out_below(offset):
            deleted.remove()
        log.close()

    def start(self) -> Recovered:
        return recover(
            self.files,
            SystemClock(),
            me=ME,
            timing=DEFAULT_TIMING,
            random_below=lambda _limit: 0,
            bootstrap_ids=(),
            endpoints=(),
            may_found=False,
        )


def shown(recovered: Recovered) -> list[str]:
    image = EMPTY_IMAGE if recovered.snapshot is None else recovered.snapshot.image
    topics = [value for entry in recovered.unapplied for value in entry.values]
    return [*names(image), *(["more"] * len(topics))]


@pytest.fixture
def disk() -> Disk:
    return Disk()


def test_a_log_without_a_snapshot_is_read_from_zero(disk: Disk) -> None:
    disk.write_log(10)
    recovered = disk.start()
    assert (len(recovered.unapplied), recovered.core.voters.keys, recovered.core.high_watermark) == (10, (ME,), None)


def test_the_newest_snapshot_and_the_log_above_it(disk: Disk) -> None:
    disk.write_log(10)
    disk.write_snapshot(4)
    disk.write_snapshot(7)
    recovered = disk.start()
    assert recovered.snapshot is not None
    assert (len(recovered.snapshot.image.topics), len(recovered.unapplied)) == (6, 3)
    assert (recovered.core.high_watermark, recovered.core.voters.keys) == (7, (ME,))


def test_a_damaged_snapshot_is_passed_over_for_the_one_before_it(disk: Disk) -> None:
    disk.write_log(10)
    disk.write_snapshot(4)
    disk.damage(disk.write_snapshot(7))
    recovered = disk.start()
    assert recovered.snapshot is not None
    assert (recovered.snapshot.position.end_offset, len(recovered.unapplied)) == (4, 6)


def test_all_damaged_and_a_whole_log_lose_nothing(disk: Disk) -> None:
    disk.write_log(10)
    disk.damage(disk.write_snapshot(4))
    disk.damage(disk.write_snapshot(7))
    assert len(disk.start().unapplied) == 10


def test_all_damaged_and_a_log_that_was_cut_refuse_to_start(disk: Disk) -> None:
    disk.write_log(10)
    path = disk.write_snapshot(10)
    disk.shorten(10)
    assert disk.start().core.log.start_offset == 10
    disk.damage(path)
    with pytest.raises(BrokerError, match="no snapshot"):
        disk.start()


def test_an_older_snapshot_does_not_take_the_place_of_a_log_that_began_above_it(disk: Disk) -> None:
    disk.write_log(10)
    disk.write_snapshot(4)
    path = disk.write_snapshot(10)
    disk.shorten(10)
    disk.damage(path)
    with pytest.raises(BrokerError, match="no snapshot"):
        disk.start()


def test_a_log_without_its_votes_refuses_to_start(disk: Disk) -> None:
    disk.write_log(3)
    disk.files.unlink(QUORUM_STATE)
    with pytest.raises(BrokerError, match="quorum-state is gone"):
        disk.start()


def test_a_snapshot_beyond_the_log_was_fetched_and_takes_its_place(disk: Disk) -> None:
    disk.write_log(3)
    disk.write_snapshot(20, epoch=4)
    recovered = disk.start()
    assert (recovered.core.log.start, recovered.log.end_offset) == (LogPosition(4, 20), 20)
    assert recovered.unapplied == []
    assert recovered.core.voters.keys == (ME,)


def test_a_snapshot_that_parts_from_the_log_takes_its_place(disk: Disk) -> None:
    disk.write_log(10)
    disk.write_snapshot(6, epoch=5)
    recovered = disk.start()
    assert (recovered.core.log.start, recovered.log.end_offset) == (LogPosition(5, 6), 6)


def test_two_snapshots_are_kept(disk: Disk) -> None:
    for end_offset in (3, 5, 9):
        disk.write_snapshot(end_offset)
    snapshots = MetadataSnapshots(disk.files)
    snapshots.remove_old()
    assert [position.end_offset for position in snapshots.positions()] == [9, 5]


def test_a_vote_that_a_killed_process_left_is_on_the_disk_before_it_is_told(disk: Disk) -> None:
    """It was killed before it had synced the directory; then power fails."""
    disk.write_log(3)
    disk.start().log.close()
    vote = ElectionState(5, voted_for=VoterKey(2, UUID(int=22)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(disk.files, "sync_dir", lambda path: None)
        disk.files.write_atomic(QUORUM_STATE, encode_election_state(vote), is_durable=True)
    for _ in range(2):
        core = disk.start().core
        assert (core.epoch, core.voted_for) == (5, vote.voted_for)
        disk.files.crash()
