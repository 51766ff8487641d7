"""LogIndex: what the core must know of a log without holding its records: where it starts and ends, and each epoch."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from typing import NamedTuple


class LogPosition(NamedTuple):
    """An end of a log: the epoch of its last entry, and the first offset after that. Orders as Raft compares logs."""

    epoch: int
    end_offset: int


NO_LOG = LogPosition(0, 0)


class LogIndex:
    def __init__(
        self, *, epoch_starts: Iterable[tuple[int, int]] = (), end_offset: int = 0, start: LogPosition = NO_LOG
    ) -> None:
        """`epoch_starts` are (epoch, first offset), rising; `start` is where the log begins: zero, or a snapshot's
        end.
        """
        self.start = start
        self.end_offset = max(end_offset, start.end_offset)
        self._starts = _from(start, list(epoch_starts))

    @property
    def start_offset(self) -> int:
        return self.start.end_offset

    @property
    def last(self) -> LogPosition:
        return LogPosition(self._starts[-1][0], self.end_offset)

    def append(self, epoch: int, base_offset: int, end_offset: int) -> None:
        assert base_offset == self.end_offset, "no gaps in a log"
        assert epoch >= self.last.epoch, "epochs never fall along a log"
        if epoch > self.last.epoch:
            self._starts.append((epoch, base_offset))
        self.end_offset = end_offset

    def truncate_to(self, offset: int) -> None:
        assert self.start_offset <= offset <= self.end_offset
        self.end_offset = offset
        first, *later = self._starts
        self._starts = [first, *(entry for entry in later if entry[1] < offset)]

    def restart_at(self, start: LogPosition) -> None:
        """A snapshot took the place of everything."""
        self.start = start
        self.end_offset = start.end_offset
        self._starts = [(start.epoch, start.end_offset)]

    def start_from(self, start: LogPosition) -> None:
        """What lies below a snapshot's end was let go."""
        assert self.start_offset <= start.end_offset <= self.end_offset
        self.start = start
        self._starts = _from(start, self._starts)

    def end_of(self, epoch: int) -> LogPosition | None:
        """The largest epoch not above the given one, with its end; None where that lies before the log's start."""
        following = bisect_right(self._starts, epoch, key=lambda entry: entry[0])
        if following == 0:
            return None
        is_latest = following == len(self._starts)
        end_offset = self.end_offset if is_latest else self._starts[following][1]
        return LogPosition(self._starts[following - 1][0], end_offset)

    def epoch_before(self, offset: int) -> int:
        """The epoch of the entry that ends at `offset`."""
        position = max(1, sum(1 for _, start in self._starts if start < offset))
        return self._starts[position - 1][0]

    def common_with(self, other: LogPosition) -> int:
        """Where this log can still agree with one in which `other.epoch` ends at `other.end_offset`."""
        mine = self.end_of(other.epoch)
        if mine is None:
            return self.start_offset
        return max(self.start_offset, min(mine.end_offset, other.end_offset))


def _from(start: LogPosition, epoch_starts: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """The epochs of a log that begins at `start`: that of the entry before it, then those of its own entries."""
    before = [(start.epoch, start.end_offset)]
    in_force = max((epoch for epoch, offset in epoch_starts if offset <= start.end_offset), default=start.epoch)
    if in_force > start.epoch:
        before.append((in_force, start.end_offset))
    return before + [(epoch, offset) for epoch, offset in epoch_starts if offset > start.end_offset]
