"""A follower as its leader sees it: how far it is, and since when it keeps up."""

from __future__ import annotations

from broker_engine.partition.effects import NO_BROKER_EPOCH

NOT_FETCHED = -1


class Follower:
    """Everything here is of the present leader epoch: a new term knows nothing before the follower's first fetch."""

    __slots__ = ("_fetch_ms", "_leader_end_offset", "broker_epoch", "caught_up_ms", "durable_end_offset", "end_offset")

    def __init__(self, *, caught_up_ms: int) -> None:
        """`caught_up_ms`: members of the ISR get a whole lag time of grace when a term begins."""
        self.broker_epoch = NO_BROKER_EPOCH
        self.end_offset = NOT_FETCHED
        self.durable_end_offset = NOT_FETCHED
        self.caught_up_ms = caught_up_ms
        """When it last had everything that the leader had."""
        self._fetch_ms = 0
        self._leader_end_offset = NOT_FETCHED

    @property
    def has_fetched(self) -> bool:
        return self.end_offset != NOT_FETCHED

    def on_fetch(self, broker_epoch: int, end_offset: int, durable_end_offset: int) -> None:
        """May go back: it truncated, or lost its disk."""
        self.broker_epoch = broker_epoch
        self.end_offset = end_offset
        self.durable_end_offset = min(durable_end_offset, end_offset)

    def note_time(self, leader_end_offset: int, now_ms: int) -> None:
        """Under steady load it never has everything: then it must have what there was at its fetch before."""
        if self.end_offset >= leader_end_offset:
            self.caught_up_ms = max(self.caught_up_ms, now_ms)
        elif self._leader_end_offset != NOT_FETCHED and self.end_offset >= self._leader_end_offset:
            self.caught_up_ms = max(self.caught_up_ms, self._fetch_ms)
        self._leader_end_offset = leader_end_offset
        self._fetch_ms = now_ms

    def forgive(self, stalled_ms: int, now_ms: int) -> None:
        self.caught_up_ms = max(self.caught_up_ms, min(self.caught_up_ms + stalled_ms, now_ms))

    def lags(self, leader_end_offset: int, now_ms: int, lag_time_ms_max: int) -> bool:
        return self.end_offset < leader_end_offset and now_ms - self.caught_up_ms > lag_time_ms_max
