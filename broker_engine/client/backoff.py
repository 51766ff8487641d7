"""The wait before the next try: doubled up to a ceiling, with jitter, so that clients do not march in step."""

from __future__ import annotations

from collections.abc import Callable

_JITTER_RATIO = 0.2


def backoff_ms(failure_count: int, *, base_ms: int, ceiling_ms: int, random_unit: Callable[[], float]) -> int:
    """The wait after the `failure_count`th failure in a row; `random_unit` gives a float in [0, 1)."""
    if failure_count <= 0:
        return 0
    # 2 ** 20 times the base is above any ceiling, and a bounded exponent keeps the number small.
    plain_ms = min(base_ms * 2 ** min(failure_count - 1, 20), ceiling_ms)
    return int(plain_ms * (1 + _JITTER_RATIO * (2 * random_unit() - 1)))
