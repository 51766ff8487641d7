from __future__ import annotations

import random
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kio.schema.leader_change_message.v1.data import LeaderChangeMessage as KioLeaderChange
from kio.serial import entity_reader

from broker_engine.errors import BrokerError, ErrorCode
from broker_engine.quorum.control import LeaderChangeMessage, is_leader_change
from broker_engine.quorum.core import QuorumCore
from broker_engine.quorum.election_state import ElectionState, VoterKey, decode_election_state, encode_election_state
from broker_engine.quorum.ready import NOTHING, Entry, Flushed, Propose, Ready, Resign, Start, StatePersisted
from broker_engine.quorum.roles import NEXT_ROLES, Role

ME = VoterKey(1, UUID(int=11))


def node(
    state: ElectionState | None = None, *, end: int = 0, last_epoch: int = 0, voters: tuple[VoterKey, ...] = (ME,)
) -> QuorumCore:
    return QuorumCore(me=ME, voters=voters, state=state, log_end_offset=end, log_last_epoch=last_epoch)


def started(core: QuorumCore) -> Ready:
    ready = core.step(Start(), 0)
    assert ready.persist_state is not None
    return core.step(StatePersisted(ready.persist_state), 0)


def test_the_only_voter_elects_itself_without_a_message() -> None:
    core = node()
    ready = core.step(Start(), 0)
    assert ready == Ready(persist_state=ElectionState(1, voted_for=ME))
    assert (core.role, core.leader_id) == (Role.CANDIDATE, None)
    ready = core.step(StatePersisted(ElectionState(1, voted_for=ME)), 0)
    assert (core.role, core.leader_id) == (Role.LEADER, 1)
    (entry,) = ready.append
    assert (entry.epoch, entry.base_offset, entry.is_control) == (1, 0, True)


def test_nothing_is_appended_before_the_epoch_is_on_disk() -> None:
    core = node()
    assert core.step(Start(), 0).append == ()
    with pytest.raises(BrokerError) as caught:
        core.step(Propose((b"x",)), 0)
    assert caught.value.code is ErrorCode.NOT_CONTROLLER


def test_nothing_commits_before_leader_change_does() -> None:
    core = node(ElectionState(3), end=10, last_epoch=3)
    started(core)
    assert core.high_watermark is None
    assert core.step(Flushed(10), 0) == NOTHING
    ready = core.step(Flushed(11), 0)
    assert (ready.high_watermark, [entry.is_control for entry in ready.committed]) == (11, [True])


def test_a_proposal_commits_with_the_leaders_own_fsync_and_as_one() -> None:
    core = node()
    started(core)
    core.step(Flushed(1), 0)
    (entry,) = core.step(Propose((b"a", b"b")), 0).append
    assert (entry.base_offset, entry.end_offset) == (1, 3)
    assert core.high_watermark == 1
    assert core.step(Flushed(3), 0) == Ready(committed=(entry,), high_watermark=3)


def test_one_flush_may_commit_many_proposals() -> None:
    core = node()
    started(core)
    entries = [core.step(Propose((bytes([n]),)), 0).append[0] for n in range(5)]
    assert core.step(Flushed(6), 0).committed[1:] == tuple(entries)


def test_a_late_report_of_an_older_flush_changes_nothing() -> None:
    core = node()
    started(core)
    core.step(Propose((b"a",)), 0)
    core.step(Flushed(2), 0)
    assert core.step(Flushed(1), 0) == NOTHING


def test_a_restart_raises_the_epoch_above_all_that_the_disk_knows() -> None:
    assert started(node(ElectionState(7, voted_for=ME), end=4, last_epoch=5)).append[0].epoch == 8
    assert started(node(ElectionState(2), end=4, last_epoch=9)).append[0].epoch == 10
    assert started(node(None, end=4, last_epoch=9)).append[0].epoch == 10


def test_a_second_start_and_a_stale_persist_report_change_nothing() -> None:
    core = node()
    core.step(Start(), 0)
    assert core.step(Start(), 0) == NOTHING
    assert core.step(StatePersisted(ElectionState(0)), 0) == NOTHING
    assert core.role is Role.CANDIDATE


def test_a_node_with_another_directory_has_no_vote() -> None:
    core = node(voters=(VoterKey(1, UUID(int=99)),))
    assert core.step(Start(), 0) == NOTHING
    assert core.role is Role.UNATTACHED


def test_one_of_three_voters_cannot_elect_itself() -> None:
    core = node(voters=(ME, VoterKey(2, UUID(int=22)), VoterKey(3, UUID(int=33))))
    assert started(core) == NOTHING
    assert core.role is Role.CANDIDATE


def test_a_resigned_leader_takes_no_more_proposals_and_commits_nothing() -> None:
    core = node()
    started(core)
    core.step(Propose((b"a",)), 0)
    core.step(Resign(), 0)
    assert core.role is Role.RESIGNED
    assert core.step(Flushed(2), 0) == NOTHING
    with pytest.raises(BrokerError):
        core.step(Propose((b"b",)), 0)


def test_leader_change_says_who_leads_and_who_votes() -> None:
    (entry,) = started(node()).append
    assert entry.control_key is not None
    assert is_leader_change(entry.control_key)
    assert entry.control_key == b"\x00\x00\x00\x02"
    message = LeaderChangeMessage.decode(entry.values[0], 1)
    assert (message.version, message.leader_id) == (1, 1)
    assert [(voter.voter_id, voter.voter_directory_id) for voter in message.voters] == [(1, UUID(int=11))]


def test_kio_reads_our_leader_change() -> None:
    (entry,) = started(node()).append
    message, size_bytes = entity_reader(KioLeaderChange)(entry.values[0], 0)
    assert size_bytes == len(entry.values[0])
    assert (message.version, message.leader_id, len(message.voters), len(message.granting_voters)) == (1, 1, 1, 1)


def test_every_role_has_a_row_and_leads_only_through_candidate() -> None:
    assert set(NEXT_ROLES) == set(Role)
    assert [role for role in Role if Role.LEADER in NEXT_ROLES[role]] == [Role.CANDIDATE]


class Disk:
    """A log and a state file that lose what was not synced, at the worst moment that the dice find."""

    def __init__(self) -> None:
        self.state = None
        self.log: list[Entry] = []
        self.synced_count = 0

    state: bytes | None

    @property
    def end_offset(self) -> int:
        return self.log[-1].end_offset if self.log else 0

    def lose_power(self, dice: random.Random) -> None:
        self.log = self.log[: dice.randint(self.synced_count, len(self.log))]
        self.synced_count = len(self.log)  # recovery syncs what it found


class History:
    """What was ever written or called committed, over all lives."""

    def __init__(self) -> None:
        self.written: dict[tuple[int, int], tuple[bytes, ...]] = {}
        self.committed: dict[int, Entry] = {}
        self.high_watermark = 0

    def write(self, entry: Entry) -> None:
        assert self.written.setdefault((entry.epoch, entry.base_offset), entry.values) == entry.values
        assert not any(base <= entry.base_offset < known.end_offset for base, known in self.committed.items())

    def commit(self, ready: Ready, disk: Disk) -> None:
        if ready.high_watermark is None:
            return
        assert ready.high_watermark >= self.high_watermark
        assert ready.high_watermark <= sum(len(entry.values) for entry in disk.log[: disk.synced_count])
        self.high_watermark = ready.high_watermark
        for entry in ready.committed:
            self.committed[entry.base_offset] = entry

    def check(self, disk: Disk) -> None:
        on_disk = {entry.base_offset: entry for entry in disk.log}
        assert all(on_disk[base] == entry for base, entry in self.committed.items())


def live_once(disk: Disk, history: History, dice: random.Random) -> None:
    state = None if disk.state is None else decode_election_state(disk.state)
    last_epoch = disk.log[-1].epoch if disk.log else 0
    core = QuorumCore(me=ME, voters=[ME], state=state, log_end_offset=disk.end_offset, log_last_epoch=last_epoch)
    ready = core.step(Start(), 0)
    for _ in range(dice.randrange(12)):
        if dice.random() < 0.1:
            break  # power is lost between any two steps
        if ready.persist_state is not None:
            disk.state = encode_election_state(ready.persist_state)
            ready = core.step(StatePersisted(ready.persist_state), 0)
            continue
        for entry in ready.append:
            history.write(entry)
            disk.log.append(entry)
        history.commit(ready, disk)
        if core.is_leader and dice.random() < 0.6:
            ready = core.step(Propose(tuple(dice.randbytes(2) for _ in range(dice.randint(1, 3)))), 0)
        else:
            disk.synced_count = len(disk.log)
            ready = core.step(Flushed(disk.end_offset), 0)


@settings(max_examples=300, deadline=None)
@given(st.integers(0, 1 << 32))
def test_over_many_lives_and_power_cuts_nothing_committed_is_lost_or_changed(seed: int) -> None:
    dice, disk, history = random.Random(seed), Disk(), History()
    for _life in range(6):
        live_once(disk, history, dice)
        disk.lose_power(dice)
        history.check(disk)
