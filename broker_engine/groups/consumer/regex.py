"""Regular expressions of members, matched on the broker by RE2: time grows with the text only, whatever the pattern, so
that nobody can hold up the broker with one. What RE2 does not know (look-ahead, back-references) is refused, as Kafka
does.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Any

import re2

from broker_engine.errors import BrokerError, ErrorCode

_MEMORY_BYTES_MAX = 2 << 20
_LENGTH_MAX = 4_096
_CACHED = 256


def matching(pattern: str, names: Iterable[str]) -> list[str]:
    """The names that match as a whole, sorted. BrokerError 128 for what is no pattern."""
    compiled = _compiled(pattern)
    return sorted(name for name in names if compiled.fullmatch(name) is not None)


def check_regex(pattern: str) -> None:
    """BrokerError 128 for what is no pattern."""
    _compiled(pattern)


@lru_cache(maxsize=_CACHED)
def _compiled(pattern: str) -> Any:
    if len(pattern) > _LENGTH_MAX:
        raise _invalid(pattern[:20] + "...", f"it is longer than {_LENGTH_MAX} characters")
    options = re2.Options()
    options.max_mem = _MEMORY_BYTES_MAX
    options.log_errors = False
    try:
        return re2.compile(pattern, options=options)
    except re2.error as error:
        reason = error.args[0] if error.args else "it cannot be read"
        text = reason.decode(errors="replace") if isinstance(reason, bytes) else str(reason)
        raise _invalid(pattern, text) from None
    except UnicodeEncodeError:
        raise _invalid("", "it is no text") from None


def _invalid(pattern: str, reason: str) -> BrokerError:
    text = f"SubscribedTopicRegex `{pattern}` is not a valid regular expression: {reason}."
    return BrokerError(ErrorCode.INVALID_REGULAR_EXPRESSION, text)
