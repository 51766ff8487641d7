"""Refuses WebSockets from foreign pages before they are accepted (HTTP 403).

A browser sends its cookies along whatever page opens the socket, and always says which page that was. So: an Origin
that is given must be ours; one that is missing is fine only with an API key in the header, which no page can set.
"""

from __future__ import annotations

from urllib.parse import urlsplit

from channels.security.websocket import WebsocketDenier
from django.conf import settings
from django.http.request import validate_host

from web.asgi_types import AsgiApp, Receive, Scope, Send, header


class OriginGate:
    def __init__(self, app: AsgiApp) -> None:
        self._app = app
        self._denier: AsgiApp = WebsocketDenier.as_asgi()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        has_key = header(scope, b"authorization") is not None
        app = (
            self._app if is_allowed(header(scope, b"origin"), settings.ALLOWED_HOSTS, has_key=has_key) else self._denier
        )
        await app(scope, receive, send)


def is_allowed(origin: str | None, allowed_hosts: list[str], *, has_key: bool) -> bool:
    if origin is None:
        return has_key
    parts = urlsplit(origin)
    host = parts.netloc.rpartition("@")[2]
    name = host.rpartition(":")[0] if host.rpartition(":")[2].isdecimal() else host
    return parts.scheme in ("http", "https") and bool(name) and validate_host(name, allowed_hosts)
