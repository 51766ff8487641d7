"""A story: a setting, what it promises, and a play that tries it. Unsafe settings must show their loss.

The verdict is by counts: lost = acknowledged and not there, duplicated = there more than once.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

from broker_engine.simulator.history import Report

if TYPE_CHECKING:
    from tests.guarantees.lab import Lab


class Expected(Enum):
    KEEPS = "keeps its promise"
    LOSES = "loses, as it must"
    DUPLICATES = "duplicates, as it must"
    REFUSES = "refuses what it could not keep"


@dataclass(frozen=True, slots=True)
class Counts:
    sent: int
    acked: int
    read: int
    lost: int
    duplicated: int

    @classmethod
    def of(cls, report: Report) -> Counts:
        return cls(report.sent, report.acked, report.read, report.lost, report.duplicated)


@dataclass(frozen=True, slots=True)
class Story:
    key: str
    items: str
    """Of mission.md, where the story is told."""
    event: str
    setting: str
    promise: str
    expected: Expected
    play: Callable[[Lab], Counts] | None = None
    """With real processes."""
    simulate: Callable[[], Counts] | None = None
    """In the simulator, where processes cannot show it."""


def judge(story: Story, counts: Counts) -> str:
    """Empty: as expected. Else what is wrong."""
    match story.expected:
        case Expected.LOSES:
            return "" if counts.lost else "no loss was shown: the play proves nothing"
        case Expected.DUPLICATES:
            return "" if counts.duplicated and not counts.lost else "no duplicate was shown, or records were lost"
        case Expected.REFUSES:
            is_refused = counts.acked < counts.sent and not counts.lost
            return "" if is_refused else "records were acknowledged that should have been refused, or lost"
        case Expected.KEEPS:
            return "" if not counts.lost and not counts.duplicated and counts.acked else "records were lost or doubled"
