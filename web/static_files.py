"""Static files, served by whitenoise beside Django rather than as its middleware.

Whitenoise's middleware is synchronous, and one such link makes Django run every async view through `async_to_sync`:
the data plane must stay on the loop that owns its clients.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any

from asgiref.sync import ThreadSensitiveContext
from asgiref.wsgi import WsgiToAsgi
from django.contrib.staticfiles.finders import get_finders
from whitenoise import WhiteNoise

from web.asgi_types import AsgiApp, Receive, Scope, Send

PREFIX = "/static/"
MAX_AGE_S = 60
# Vite puts a hash of the content into these names: the same name never means other bytes.
_HASHED = re.compile(r"/static/dashboard/assets/.+-[A-Za-z0-9_-]{8,}\.\w+$")


class StaticFiles:
    def __init__(self, app: AsgiApp, *, notices_changes: bool) -> None:
        """`notices_changes` looks at the disk at every request: for development, where the dashboard is rebuilt."""
        self._app = app
        self._files = WsgiToAsgi(_white_noise(notices_changes))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if not scope["path"].startswith(PREFIX):
            await self._app(scope, receive, send)
            return
        # A thread per request: without the context a slow reader would hold the one thread that all share.
        async with ThreadSensitiveContext():
            await self._files(scope, receive, send)


def _white_noise(notices_changes: bool) -> WhiteNoise:
    files = WhiteNoise(
        _not_found,
        autorefresh=notices_changes,
        max_age=MAX_AGE_S,
        allow_all_origins=False,
        immutable_file_test=lambda path, url: bool(_HASHED.match(url)),
    )
    for location in _locations():
        files.add_files(location, prefix=PREFIX)
    return files


def _locations() -> Iterable[str]:
    storages = [storage for finder in get_finders() for storage in getattr(finder, "storages", {}).values()]
    return dict.fromkeys(str(storage.location) for storage in storages)


def _not_found(environ: dict[str, Any], start_response: Callable[..., Any]) -> list[bytes]:
    start_response("404 Not Found", [("Content-Type", "text/plain; charset=utf-8")])
    return [b"No such file.\n"]
