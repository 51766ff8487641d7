"""Why an action says no. The API turns these into problem documents; nothing else catches them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


class Refusal(Exception):  # noqa: N818 (an answer to the caller, not a fault of ours)
    """Bad luck or bad input of the caller, told in one sentence that they may read."""


class NotFound(Refusal):
    """Also for what belongs to somebody else: the two must look the same."""


class Conflict(Refusal):
    """What is there already stands in the way."""


class Invalid(Refusal):
    """One field is wrong."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(message)
        self.field = field


class Forbidden(Refusal):
    """The caller is known and may not."""


class PolicyViolation(Refusal):
    """`verdicts` are all rules looked at, the failed ones among them."""

    def __init__(self, verdicts: Sequence[Any]) -> None:
        self.verdicts = tuple(verdicts)
        failed = sum(not verdict.ok for verdict in verdicts)
        super().__init__(f"{failed} rule{'s' if failed != 1 else ''} failed")


class RefusedByEngine(Refusal):
    """The wish was sound to us and the engine turned it down."""
