"""How a group is doing in one partition, by rules after Burrow's, pure: what it committed and how far it was behind,
over a sliding window, in; a status and a sentence for people, out.

Tested in this order: STOP, REWIND, OK where it had caught up, STALL, WARN. Two known faults of the original are
mended. A tiny lag is none: it counts from so many records *and* so many seconds on, or when a single record has waited
for longer than the whole window. And one dip hides no rising trend: having caught up once is only OK while the slope of
the lag does not rise.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise

from control_plane.live.group_book import Sample


class Status(StrEnum):
    """The better ones first: a group is as well as the worst of its partitions."""

    OK = "ok"
    UNKNOWN = "unknown"
    WARN = "warn"
    STALL = "stall"
    REWIND = "rewind"
    STOP = "stop"


class Trend(StrEnum):
    STEADY = "steady"
    GROWING = "growing"
    SHRINKING = "shrinking"


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    window_ms: int = 300_000
    lag_records_min: int = 20
    lag_seconds_min: float = 10.0
    samples_min: int = 3
    """Fewer tell no trend."""


LIMITS = Limits()


@dataclass(frozen=True, slots=True)
class Now:
    at_ms: int
    commit_ms: int
    lag: int
    lag_s: float | None
    """The age of the first record that was not read; None where nobody has looked yet."""


@dataclass(frozen=True, slots=True)
class Verdict:
    status: Status
    words: str
    trend: Trend = Trend.STEADY
    eta_s: float | None = None
    """Until nothing is left, at the present pace; None where that is not in sight."""


def judge(now: Now, samples: Sequence[Sample], limits: Limits = LIMITS) -> Verdict:
    window = [sample for sample in samples if now.at_ms - sample.at_ms <= limits.window_ms]
    slope = slope_per_s(window) if len(window) >= limits.samples_min else 0.0
    trend = _trend(slope, window, limits)
    if not is_behind(now, limits):
        return Verdict(Status.OK, _fine(now), trend)
    eta_s = now.lag / -slope if trend is Trend.SHRINKING else None
    status = _status(now, window, trend, limits)
    return Verdict(status, _WORDS[status](now, window, eta_s), trend, eta_s)


def is_behind(now: Now, limits: Limits = LIMITS) -> bool:
    """Whether the lag counts at all."""
    if now.lag <= 0:
        return False
    if now.lag_s is None:
        # A commit of this moment: what is behind it is looked up in the next one.
        is_fresh = now.at_ms - now.commit_ms <= limits.lag_seconds_min * 1000
        return now.lag > limits.lag_records_min and not is_fresh
    is_large = now.lag > limits.lag_records_min and now.lag_s > limits.lag_seconds_min
    return is_large or now.lag_s * 1000 > limits.window_ms


def _status(now: Now, window: Sequence[Sample], trend: Trend, limits: Limits) -> Status:
    was_at_end = any(sample.lag <= limits.lag_records_min for sample in window)
    if now.at_ms - now.commit_ms > limits.window_ms and not any(sample.lag == 0 for sample in window):
        return Status.STOP
    if _went_back(window):
        return Status.REWIND
    if was_at_end and trend is not Trend.GROWING:
        return Status.OK
    if _repeats(window, limits):
        return Status.STALL
    if trend is Trend.GROWING or _never_shrinks(window, limits):
        return Status.WARN
    return Status.OK


def _went_back(window: Sequence[Sample]) -> bool:
    """An offset went back and has not come to where it was."""
    highest = max((sample.offset for sample in window), default=0)
    fell = any(after.offset < before.offset for before, after in pairwise(window))
    return fell and window[-1].offset < highest


def _repeats(window: Sequence[Sample], limits: Limits) -> bool:
    """Commits go on, of one and the same offset."""
    commits = {sample.commit_ms for sample in window}
    offsets = {sample.offset for sample in window}
    return len(window) >= limits.samples_min and len(commits) > 1 and len(offsets) == 1


def _never_shrinks(window: Sequence[Sample], limits: Limits) -> bool:
    return len(window) >= limits.samples_min and all(after.lag >= before.lag for before, after in pairwise(window))


def _trend(slope: float, window: Sequence[Sample], limits: Limits) -> Trend:
    """A slope counts when it makes more of a difference over the window than the smallest lag that counts."""
    if len(window) < limits.samples_min:
        return Trend.STEADY
    change = slope * (window[-1].at_ms - window[0].at_ms) / 1000
    if abs(change) <= limits.lag_records_min:
        return Trend.STEADY
    return Trend.GROWING if change > 0 else Trend.SHRINKING


def slope_per_s(window: Sequence[Sample]) -> float:
    """Records of lag per second: the straight line that fits the samples best."""
    count = len(window)
    if count < 2:
        return 0.0
    start_ms = window[0].at_ms
    times = [(sample.at_ms - start_ms) / 1000 for sample in window]
    mean_time, mean_lag = sum(times) / count, sum(sample.lag for sample in window) / count
    spread = sum((time - mean_time) ** 2 for time in times)
    if spread == 0:
        return 0.0
    return sum((time - mean_time) * (s.lag - mean_lag) for time, s in zip(times, window, strict=True)) / spread


def worst(statuses: Iterable[Status]) -> Status:
    order = list(Status)
    return max(statuses, key=order.index, default=Status.UNKNOWN)


# --- in words


def _fine(now: Now) -> str:
    if now.lag <= 0:
        return "Everything is read."
    return f"{records(now.lag)} to read: too few, or too new, to worry about."


def _stop(now: Now, window: Sequence[Sample], eta_s: float | None) -> str:
    ago = duration((now.at_ms - now.commit_ms) / 1000)
    return f"Nothing was committed for {ago}, and {records(now.lag)} wait{_oldest(now)}."


def _rewind(now: Now, window: Sequence[Sample], eta_s: float | None) -> str:
    highest = max(sample.offset for sample in window)
    return f"The offset went back from {highest:,} to {window[-1].offset:,}: records are read again."


def _stall(now: Now, window: Sequence[Sample], eta_s: float | None) -> str:
    return f"Commits go on, but always of offset {window[-1].offset:,}; {records(now.lag)} wait{_oldest(now)}."


def _warn(now: Now, window: Sequence[Sample], eta_s: float | None) -> str:
    if len({sample.offset for sample in window}) <= 1:
        return _stop(now, window, eta_s)
    return f"It reads, but falls behind: {records(now.lag)} wait{_oldest(now)}, and the lag does not shrink."


def _catching_up(now: Now, window: Sequence[Sample], eta_s: float | None) -> str:
    done = f"; at this pace done in {duration(eta_s)}" if eta_s is not None else ""
    return f"{records(now.lag)} to read{_oldest(now)}{done}."


_WORDS = {
    Status.STOP: _stop,
    Status.REWIND: _rewind,
    Status.STALL: _stall,
    Status.WARN: _warn,
    Status.OK: _catching_up,
}


def records(count: int) -> str:
    return f"{count:,} record{'' if count == 1 else 's'}"


def _oldest(now: Now) -> str:
    return oldest(now.lag_s)


def oldest(lag_s: float | None) -> str:
    return "" if lag_s is None else f", the oldest for {duration(lag_s)}"


def duration(seconds: float) -> str:
    for unit_s, name in ((86_400, "d"), (3_600, "h"), (60, "min")):
        if seconds >= 2 * unit_s:
            return f"{int(seconds // unit_s)} {name}"
    return f"{int(seconds)} s"
