"""The bar of a metric: what its ratio to Kafka, or its own value, must reach."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Bar:
    limit: float
    is_minimum: bool
    is_ratio: bool = True
    also: Bar | None = None

    def is_met(self, ours: float, ratio: float | None) -> bool | None:
        """None where there is nothing to judge by: Kafka was not measured."""
        value = ratio if self.is_ratio else ours
        if value is None:
            return None
        is_met = value >= self.limit if self.is_minimum else value <= self.limit
        return is_met and (self.also is None or self.also.is_met(ours, ratio) is not False)

    def __str__(self) -> str:
        text = f"{'>=' if self.is_minimum else '<='} {self.limit:g}{'x' if self.is_ratio else ''}"
        return text if self.also is None else f"{text} and {self.also}"


def at_least(ratio: float) -> Bar:
    return Bar(ratio, is_minimum=True)


def at_most(ratio: float, *, also: Bar | None = None) -> Bar:
    return Bar(ratio, is_minimum=False, also=also)


def value_at_least(limit: float) -> Bar:
    return Bar(limit, is_minimum=True, is_ratio=False)


def value_at_most(limit: float) -> Bar:
    return Bar(limit, is_minimum=False, is_ratio=False)
