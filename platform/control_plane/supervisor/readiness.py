"""How the supervisor learns that a child can serve: by a line in its log, or by an answer over HTTP."""

from __future__ import annotations

import http.client
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from control_plane.supervisor.child import Child

PROBE_TIMEOUT_S = 2.0


def log_says(text: str) -> Callable[[Child], bool]:
    return lambda child: text in child.log_text()


def http_answers(host: str, port: int, path: str) -> Callable[[Child], bool]:
    def probe(child: Child) -> bool:
        connection = http.client.HTTPConnection(host, port, timeout=PROBE_TIMEOUT_S)
        try:
            connection.request("GET", path)
            return connection.getresponse().status == http.client.OK
        except (OSError, http.client.HTTPException):
            return False  # not yet
        finally:
            connection.close()

    return probe
