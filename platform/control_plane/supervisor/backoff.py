"""When a child that died is started again: soon at first, then ever more rarely, soon again after a healthy while."""

from __future__ import annotations

from dataclasses import dataclass

FIRST_DELAY_S = 1.0
LONGEST_DELAY_S = 30.0
HEALTHY_AFTER_S = 60.0


@dataclass(slots=True)
class RestartBackoff:
    """Pure: times come in as arguments."""

    deaths_in_a_row: int = 0

    def on_death(self, lived_s: float) -> float:
        """The seconds to wait before the next start."""
        if lived_s >= HEALTHY_AFTER_S:
            self.deaths_in_a_row = 0
        self.deaths_in_a_row += 1
        return min(LONGEST_DELAY_S, FIRST_DELAY_S * 2.0 ** min(self.deaths_in_a_row - 1, 10))
