"""What becomes of one request, as the connection sees it."""

from __future__ import annotations

from collections.abc import Awaitable, Sequence
from dataclasses import dataclass

from broker_engine.net.stream import Part


@dataclass(frozen=True, slots=True)
class Outcome:
    """`parts` is the framed answer; None: the client gets none (acks=0)."""

    parts: Sequence[Part] | None = None
    is_last: bool = False
    """Close the connection after this answer."""


NO_ANSWER = Outcome()
HANG_UP = Outcome(is_last=True)
"""What Kafka does with a request that it cannot read: close, without a word."""


@dataclass(frozen=True, slots=True)
class Later:
    """The answer needs time."""

    outcome: Awaitable[Outcome | Later]
    """Another Later where the answer needs more time, and the next request may begin now."""
    is_next_allowed: bool = False
    """May the connection's next request begin meanwhile? Its answer still leaves after this one."""
    is_cancelled_with_connection: bool = False
    """True where nobody but the client wants the result (a long poll)."""
