"""Static files: whitenoise finds them and makes the headers, an ASGI app of ours sends them.

Not as Django middleware: whitenoise's is synchronous, and one such link makes Django run every async view through
`async_to_sync`, while the data plane must stay on the loop that owns its clients. Nor as a WSGI app behind asgiref's
adapter: its context leaks into the next request of the connection, which then fails.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any, BinaryIO

from asgiref.sync import sync_to_async
from django.contrib.staticfiles.finders import get_finders
from whitenoise import WhiteNoise

from web.asgi_types import AsgiApp, Receive, Scope, Send

PREFIX = "/static/"
OWN_FOLDER = str(Path(__file__).resolve().parent / "static")
MAX_AGE_S = 60
CHUNK_BYTES = 256 << 10
# Vite puts a hash of the content into these names: the same name never means other bytes.
_HASHED = re.compile(r"/static/dashboard/assets/.+-[A-Za-z0-9_-]{8,}\.\w+$")


class StaticFiles:
    def __init__(self, app: AsgiApp, *, notices_changes: bool) -> None:
        """`notices_changes` looks at the disk at every request: for development, where the dashboard is rebuilt."""
        self._app = app
        self._files = _white_noise(notices_changes)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if not scope["path"].startswith(PREFIX):
            await self._app(scope, receive, send)
            return
        response = await _in_thread(self._respond, scope["path"], scope["method"], _environment(scope))
        if response is None:
            await _send_not_found(send)
            return
        headers = [(name.lower().encode(), value.encode()) for name, value in response.headers]
        await send({"type": "http.response.start", "status": int(response.status), "headers": headers})
        await _send_body(send, response.file)

    def _respond(self, path: str, method: str, environment: dict[str, str]) -> Any:
        file = self._files.find_file(path) if self._files.autorefresh else self._files.files.get(path)
        return None if file is None else file.get_response(method, environment)


def _environment(scope: Scope) -> dict[str, str]:
    """The request's headers as whitenoise reads them, in WSGI's spelling."""
    pairs = [(name.decode("latin-1"), value.decode("latin-1")) for name, value in scope["headers"]]
    return {f"HTTP_{name.upper().replace('-', '_')}": value for name, value in pairs}


async def _send_body(send: Send, file: BinaryIO | None) -> None:
    if file is None:  # HEAD, or "not modified"
        await send({"type": "http.response.body"})
        return
    try:
        while chunk := await _in_thread(file.read, CHUNK_BYTES):
            await send({"type": "http.response.body", "body": chunk, "more_body": True})
        await send({"type": "http.response.body"})
    finally:
        file.close()


async def _send_not_found(send: Send) -> None:
    headers = [(b"content-type", b"text/plain; charset=utf-8")]
    await send({"type": "http.response.start", "status": 404, "headers": headers})
    await send({"type": "http.response.body", "body": b"No such file.\n"})


async def _in_thread(work: Any, *arguments: Any) -> Any:
    return await sync_to_async(work, thread_sensitive=False)(*arguments)


def _white_noise(notices_changes: bool) -> WhiteNoise:
    files = WhiteNoise(
        None,
        autorefresh=notices_changes,
        max_age=MAX_AGE_S,
        allow_all_origins=False,
        immutable_file_test=lambda path, url: bool(_HASHED.match(url)),
    )
    for location in _locations():
        # Ours may be built later, which only a server that notices changes can serve.
        if notices_changes or Path(location).is_dir():
            files.add_files(location, prefix=PREFIX)
    return files


def _locations() -> Iterable[str]:
    storages = [storage for finder in get_finders() for storage in getattr(finder, "storages", {}).values()]
    return dict.fromkeys([OWN_FOLDER, *(str(storage.location) for storage in storages)])
