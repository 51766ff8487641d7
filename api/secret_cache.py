"""Remembers for a short time which secrets were right, so that not every call pays for PBKDF2.

Only right answers are kept, under a digest with a key that lives and dies with the process: the secret itself stays
nowhere. A revoked key is refused all the same, because its row is read on every call.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import threading
import time
from collections import OrderedDict

from control_plane.keys.models import ApiKey
from control_plane.keys.verifiers import matches

KEPT_S = 60.0
ENTRIES_MAX = 4096


class SecretCache:
    def __init__(self) -> None:
        self._pepper = os.urandom(32)
        self._lock = threading.Lock()
        self._right_until_s: OrderedDict[bytes, float] = OrderedDict()

    def is_right(self, key: ApiKey, secret: str) -> bool:
        digest = self._digest(key, secret)
        with self._lock:
            if self._right_until_s.get(digest, 0.0) > time.monotonic():
                return True
        if not matches(key.verifiers, secret):
            return False
        self._remember(digest)
        return True

    def _digest(self, key: ApiKey, secret: str) -> bytes:
        # The verifier is part of it: a key whose secret was changed is not let in with the old one.
        text = "\0".join((key.pk, key.verifiers[0]["stored_key"], secret))
        return hmac.digest(self._pepper, text.encode(), hashlib.sha256)

    def _remember(self, digest: bytes) -> None:
        with self._lock:
            self._right_until_s[digest] = time.monotonic() + KEPT_S
            self._right_until_s.move_to_end(digest)
            while len(self._right_until_s) > ENTRIES_MAX:
                self._right_until_s.popitem(last=False)
