"""Bugs of the quorum and of a single disk, for `planted.py`: each function stands in the place of a method."""

from __future__ import annotations

from broker_engine.quorum.election import Elections
from broker_engine.quorum.leading import Leading
from broker_engine.quorum.messages import VoteRequest
from broker_engine.simulator.sim_disk import SimDisk


def commit_by_counting(self: Leading, agreed: int) -> bool:
    return agreed > (self.high_watermark or 0)


def vote_for_anybody(self: Elections, request: VoteRequest) -> bool:
    """Whoever asks gets the vote of this epoch, also after another got it."""
    is_granted = self.known_leader_id is None and request.last >= self.log.last
    if is_granted:
        self.voted_for = None
    return is_granted


def rename_without_sync(self: SimDisk, path: str, data: bytes, *, is_durable: bool) -> None:
    temporary = path + ".tmp"
    self._write_temporary(temporary, data, is_durable=is_durable)
    self.rename(temporary, path)
