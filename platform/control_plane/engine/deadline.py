"""One time budget, shared by the steps of a piece of work."""

from __future__ import annotations

import time
from dataclasses import dataclass

from control_plane.engine.interface import EngineUnavailable


@dataclass(frozen=True, slots=True)
class Deadline:
    at_s: float  # on the monotonic clock

    @classmethod
    def after(cls, seconds: float) -> Deadline:
        return cls(time.monotonic() + seconds)

    def left_s(self) -> float:
        """What is left, for the next step's time-out; raises when that is nothing."""
        left = self.at_s - time.monotonic()
        if left <= 0:
            raise EngineUnavailable("the time for this request is used up; the work goes on in the background")
        return left
