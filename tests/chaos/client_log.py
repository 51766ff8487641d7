"""librdkafka's own words, kept in a file: who a transactional producer is stands nowhere else.

Its library writes to stderr, not by way of Python: what a client that hangs said last is there when it is killed.
`CHAOS_CLIENT_DEBUG=eos,protocol,broker` keeps each request too.
"""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

DEBUG = {"debug": os.environ.get("CHAOS_CLIENT_DEBUG", "eos"), "log_level": 7}
_ACQUIRED = re.compile(rb"\|GETPID\|([^|]*)#producer-\d+\|[^\n]*?: Acquired PID\{Id:(\d+),Epoch:(\d+)\}")

Identity = tuple[int, int]
"""Producer id and epoch."""


def divert_stderr(path: Path) -> None:
    """From now on what libraries say goes to the end of the file; what Python says goes where it went."""
    sys.stderr = os.fdopen(os.dup(2), "w", buffering=1)
    with path.open("ab") as file:
        os.dup2(file.fileno(), 2)


def last_identity(text: bytes, client_id: str) -> Identity | None:
    """What InitProducerId gave this client last, as its log tells."""
    found = [match for match in _ACQUIRED.finditer(text) if match[1] == client_id.encode()]
    return (int(found[-1][2]), int(found[-1][3])) if found else None


class ClientLog:
    """Reads from where the file ends now."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("rb")
        self._file.seek(0, os.SEEK_END)
        self._rest = b""

    def new_lines(self) -> bytes:
        text = self._rest + self._file.read()
        lines, newline, self._rest = text.rpartition(b"\n")
        return lines + newline
