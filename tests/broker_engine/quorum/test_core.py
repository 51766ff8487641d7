"""One voter: it elects itself without a message, and what it says is committed stays."""

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
from broker_engine.quorum.log_index import LogIndex
from broker_engine.quorum.ready import NOTHING, Entry, Flushed, Propose, Ready, Resign, Start, Tick
from broker_engine.quorum.roles import NEXT_ROLES, Role
from broker_engine.quorum.voter_set import Voter, VoterSet

ME = VoterKey(1, UUID(int=11))


def node(
    state: ElectionState | None = None, *, end: int = 0, last_epoch: int = 0, voters: tuple[VoterKey, ...] = (ME,)
) -> QuorumCore:
    starts = [(last_epoch, 0)] if last_epoch else []
    return QuorumCore(
        me=ME,
        state=state,
        log=LogIndex(epoch_starts=starts, end_offset=end),
        voters=[(0, VoterSet.of(map(Voter, voters)))],
        random_below=lambda _limit: 0,
    )


def test_the_only_voter_elects_itself_without_a_message_or_a_timer() -> None:
    core = node()
    ready = core.step(Start(), 0)
    assert (core.role, core.leader_id, core.next_deadline_ms) == (Role.LEADER, 1, None)
    assert ready.persist_state == ElectionState(1, 1, ME)
    (entry,) = ready.append
    assert (entry.epoch, entry.base_offset, entry.is_control, ready.send) == (1, 0, True, ())


def test_nothing_commits_before_leader_change_does() -> None:
    core = node(ElectionState(3), end=10, last_epoch=3)
    core.step(Start(), 0)
    assert core.high_watermark is None
    assert core.step(Flushed(10), 0) == NOTHING
    assert not core.has_committed_in_epoch
    assert core.step(Flushed(11), 0) == Ready(high_watermark=11)
    assert core.has_committed_in_epoch


def test_a_proposal_commits_with_the_leaders_own_fsync_and_as_one() -> None:
    core = node()
    core.step(Start(), 0)
    core.step(Flushed(1), 0)
    (entry,) = core.step(Propose((b"a", b"b")), 0).append
    assert (entry.base_offset, entry.end_offset) == (1, 3)
    assert core.high_watermark == 1
    assert core.step(Flushed(3), 0) == Ready(high_watermark=3)


def test_a_late_report_of_an_older_flush_changes_nothing() -> None:
    core = node()
    core.step(Start(), 0)
    core.step(Propose((b"a",)), 0)
    core.step(Flushed(2), 0)
    assert core.step(Flushed(1), 0) == NOTHING


def test_a_restart_raises_the_epoch_above_all_that_the_disk_knows() -> None:
    def first_epoch(core: QuorumCore) -> int:
        return core.step(Start(), 0).append[0].epoch

    assert first_epoch(node(ElectionState(7, voted_for=ME), end=4, last_epoch=5)) == 8
    assert first_epoch(node(ElectionState(2), end=4, last_epoch=9)) == 10
    assert first_epoch(node(None, end=4, last_epoch=9)) == 10


def test_a_second_start_and_a_tick_without_a_deadline_change_nothing() -> None:
    core = node()
    core.step(Start(), 0)
    assert core.step(Start(), 0) == NOTHING
    assert core.step(Tick(), 10_000_000) == NOTHING
    assert core.role is Role.LEADER


def test_a_node_with_another_directory_has_no_vote() -> None:
    core = node(voters=(VoterKey(1, UUID(int=99)),))
    core.step(Start(), 0)
    core.step(Tick(), 10_000_000)
    assert (core.role, core.epoch) == (Role.UNATTACHED, 0)


def test_one_of_three_voters_cannot_elect_itself() -> None:
    core = node(voters=(ME, VoterKey(2, UUID(int=22)), VoterKey(3, UUID(int=33))))
    core.step(Start(), 0)
    core.step(Tick(), 10_000)
    assert (core.role, core.epoch) == (Role.PROSPECTIVE, 0)


def test_a_resigned_leader_takes_no_more_proposals_and_commits_nothing() -> None:
    core = node()
    core.step(Start(), 0)
    core.step(Propose((b"a",)), 0)
    core.step(Resign(), 0)
    assert core.role is Role.RESIGNED
    assert core.step(Flushed(2), 0) == NOTHING
    with pytest.raises(BrokerError) as caught:
        core.step(Propose((b"b",)), 0)
    assert caught.value.code is ErrorCode.NOT_CONTROLLER


def test_leader_change_says_who_leads_and_who_votes() -> None:
    (entry,) = node().step(Start(), 0).append
    assert entry.control_key is not None
    assert is_leader_change(entry.control_key)
    assert entry.control_key == b"\x00\x00\x00\x02"
    message = LeaderChangeMessage.decode(entry.values[0], 1)
    assert (message.version, message.leader_id) == (1, 1)
    assert [(voter.voter_id, voter.voter_directory_id) for voter in message.voters] == [(1, UUID(int=11))]


def test_kio_reads_our_leader_change() -> None:
    (entry,) = node().step(Start(), 0).append
    message, size_bytes = entity_reader(KioLeaderChange)(entry.values[0], 0)
    assert size_bytes == len(entry.values[0])
    assert (message.version, message.leader_id, len(message.voters), len(message.granting_voters)) == (1, 1, 1, 1)


def test_every_role_has_a_row_and_leads_only_through_candidate() -> None:
    assert set(NEXT_ROLES) == set(Role)
    assert [role for role in Role if Role.LEADER in NEXT_ROLES[role]] == [Role.CANDIDATE]


class Disk:
    """A log and a state file that lose what was not synced, at the worst moment that the dice find."""

    def __init__(self) -> None:
        self.state: bytes | None = None
        self.log: list[Entry] = []
        self.synced_count = 0

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
        self.committed: list[Entry] = []

    def write(self, entry: Entry) -> None:
        assert self.written.setdefault((entry.epoch, entry.base_offset), entry.values) == entry.values

    def commit(self, ready: Ready, disk: Disk) -> None:
        if ready.high_watermark is not None:
            now = [entry for entry in disk.log[: disk.synced_count] if entry.end_offset <= ready.high_watermark]
            assert now[: len(self.committed)] == self.committed
            assert now[-1].end_offset == ready.high_watermark
            self.committed = now


def live_once(disk: Disk, history: History, dice: random.Random) -> None:
    state = None if disk.state is None else decode_election_state(disk.state)
    core = node(state, end=disk.end_offset, last_epoch=disk.log[-1].epoch if disk.log else 0)
    ready = core.step(Start(), 0)
    for _ in range(dice.randrange(12)):
        if dice.random() < 0.1:
            break  # power is lost between any two steps
        if ready.persist_state is not None:
            disk.state = encode_election_state(ready.persist_state)
            if dice.random() < 0.1:
                break
        for entry in ready.append:
            history.write(entry)
            disk.log.append(entry)
        history.commit(ready, disk)
        if dice.random() < 0.6:
            ready = core.step(Propose(tuple(b"\x01" + dice.randbytes(2) for _ in range(dice.randint(1, 3)))), 0)
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
        assert disk.log[: len(history.committed)] == history.committed
