"""Why something fails, said once, though it is tried again every second: a full disk may last for hours."""

from __future__ import annotations


class Complaint:
    __slots__ = ("_reason",)

    def __init__(self) -> None:
        self._reason = ""

    def is_news(self, reason: str) -> bool:
        """Whether it was something else the last time, or nothing: then it is worth a line in the log."""
        was, self._reason = self._reason, reason
        return reason != was

    def settle(self) -> None:
        """It went well: the same reason is news again."""
        self._reason = ""
