"""Many seeds on the harsh bench, and proof that it finds what it looks for: bugs planted in the core."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from broker_engine.quorum.core import QuorumCore
from broker_engine.quorum.election_state import VoterKey
from broker_engine.quorum.roles import Role
from tests.broker_engine.quorum.bench import World

SEEDS_PER_CASE = 25
PLANTED_SEEDS_MAX = 300


@pytest.mark.parametrize("first_seed", range(0, 200, SEEDS_PER_CASE))
def test_the_quorum_holds_its_invariants(first_seed: int) -> None:
    for seed in range(first_seed, first_seed + SEEDS_PER_CASE):
        try:
            World(seed).run()
        except Exception as error:
            raise AssertionError(f"seed {seed}: {error}") from error


def test_the_same_seed_gives_the_same_history() -> None:
    def history(seed: int) -> object:
        world = World(seed)
        world.run()
        return world.oracle.committed, world.oracle.leaders, world.now_ms

    assert history(7) == history(7)


Bug = dict[str, Callable[..., Any]]


def _never_asks_the_voters(self: QuorumCore) -> None:
    self._check_at_ms = None


def _counts_itself_unsynced(self: QuorumCore) -> int:
    ends = [
        self.log.end_offset if key == self.me else self.progress[key].durable_end_offset if key in self.progress else 0
        for key in self.voters.keys
    ]
    return sorted(ends, reverse=True)[self.voters.majority_count - 1]


def _fetches_before_it_synced(self: QuorumCore) -> bool:
    is_free = self._fetch is None and self._loading is None
    return is_free and self.role in {Role.FOLLOWER, Role.UNATTACHED}


def _votes_again(self: QuorumCore, candidate: VoterKey) -> None:
    self.voted_for = candidate
    self._become_unattached(epoch=self.epoch)


PLANTED: dict[str, Bug] = {
    "votes twice in an epoch": {
        "_grants_vote": lambda self, request: request.last >= self.log.last,
        "_vote_for": _votes_again,
    },
    "votes for any log": {
        "_grants_vote": lambda self, request: self.known_leader_id is None and self.voted_for is None,
        "_grants_pre_vote": lambda self, request: not self._is_in_touch,
    },
    "commits older epochs by counting copies": {"_may_commit": lambda self, agreed: True},
    "counts itself before its fsync": {"_agreed_end_offset": _counts_itself_unsynced},
    "forgets to persist": {"_unpersisted": lambda self: None},
    "never looks whether it has a majority": {"_hear_from_everybody": _never_asks_the_voters},
    "changes voters at will": {"_check_may_change_voters": lambda self: None},
    "fetches before it synced": {"_may_fetch": property(_fetches_before_it_synced)},  # type: ignore[dict-item]
}


@pytest.mark.parametrize("name", list(PLANTED))
def test_a_planted_bug_is_found(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for method, bug in PLANTED[name].items():
        monkeypatch.setattr(QuorumCore, method, bug)
    for seed in range(PLANTED_SEEDS_MAX):
        try:
            World(seed).run()
        except AssertionError:
            return
    raise AssertionError(f"{PLANTED_SEEDS_MAX} seeds did not find it")
