"""Backoff for failed sign-ins, per account and address.

The first failures are free; after them the wait doubles up to a minute. It lives in Django's cache: per process
without Redis, shared with it.
"""

from __future__ import annotations

import hashlib
import time
from dataclasses import dataclass

from django.core.cache import cache

from api.problems import ProblemError, too_many_tries

FREE_FAILURES = 5
WAIT_S_MAX = 60
REMEMBERED_S = 15 * 60


@dataclass(frozen=True, slots=True)
class Tries:
    failures: int
    last_s: float

    def wait_s(self, now_s: float) -> int:
        over = self.failures - FREE_FAILURES
        if over < 0:
            return 0
        wait = min(WAIT_S_MAX, 2 ** min(over, 10)) - (now_s - self.last_s)
        return max(0, int(wait + 0.999))


def check(account: str, address: str) -> None:
    """Raise 429 while this pair has to wait. Also for a right password: else it would tell a guesser so."""
    tries = cache.get(_key(account, address))
    wait_s = 0 if tries is None else Tries(*tries).wait_s(time.time())
    if wait_s:
        raise ProblemError(too_many_tries(wait_s))


def failed(account: str, address: str) -> None:
    key = _key(account, address)
    failures = (cache.get(key) or (0, 0.0))[0] + 1
    cache.set(key, (failures, time.time()), REMEMBERED_S)


def succeeded(account: str, address: str) -> None:
    cache.delete(_key(account, address))


def _key(account: str, address: str) -> str:
    return "sign-in:" + hashlib.sha256(f"{account.strip().lower()}\0{address}".encode()).hexdigest()
