"""Regular expressions of members, matched on the broker by RE2: no pattern makes time grow with more than the length of
the text times its own size. What RE2 does not know (look-ahead, back-references) is refused, as Kafka does, and so is
what grows too large. Ten milliseconds for a name are possible all the same: a broker matches in a thread, in which RE2
lets everybody else go on, and each name once.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from functools import lru_cache
from typing import Any

import re2

from broker_engine.errors import BrokerError, ErrorCode

_MEMORY_BYTES_MAX = 64 << 10
_LENGTH_MAX = 4_096
_CACHED = 256
_VERDICTS_CACHED = 1 << 16

Matched = Mapping[str, Collection[str]]
"""What each pattern matches of some names."""


def matching(pattern: str, names: Iterable[str]) -> list[str]:
    """The names that match as a whole, sorted. BrokerError 128 for what is no pattern."""
    return sorted(name for name in names if _is_match(pattern, name))


def match_all(patterns: Iterable[str], names: Collection[str]) -> Matched:
    """BrokerError 128 for what is no pattern."""
    return {pattern: matching(pattern, names) for pattern in patterns}


def check_regex(pattern: str) -> None:
    """BrokerError 128 for what is no pattern."""
    _compiled(pattern)


@lru_cache(maxsize=_VERDICTS_CACHED)
def _is_match(pattern: str, name: str) -> bool:
    return _compiled(pattern).fullmatch(name) is not None


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
