"""The ASGI entry point: HTTP to Django, WebSockets to the consumer, start and stop of what they share."""

from __future__ import annotations

import os
from typing import cast

from channels.routing import ProtocolTypeRouter, URLRouter
from django.core.asgi import get_asgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "control_plane.settings")
# Loads the apps: everything below imports models.
django_application = get_asgi_application()

from channels.security.websocket import WebsocketDenier  # noqa: E402
from django.conf import settings  # noqa: E402
from django.urls import path, re_path  # noqa: E402

from api.gateway import runtime  # noqa: E402
from control_plane.live.service import live  # noqa: E402
from web.asgi_types import AsgiApp  # noqa: E402
from web.body_limit import BodyLimit  # noqa: E402
from web.consumers.origin import OriginGate  # noqa: E402
from web.consumers.socket import GatewaySocket  # noqa: E402
from web.draining import drain_before_stop_signals  # noqa: E402
from web.lifespan import Lifespan  # noqa: E402
from web.security_headers import SecurityHeaders  # noqa: E402
from web.static_files import StaticFiles  # noqa: E402

served_by_django = BodyLimit(cast(AsgiApp, django_application))
http = SecurityHeaders(StaticFiles(served_by_django, notices_changes=not settings.HIGHWATER.is_production))
websocket = OriginGate(URLRouter([path("api/v1/ws", GatewaySocket.as_asgi()), re_path(r"", WebsocketDenier.as_asgi())]))
lifespan = Lifespan(
    on_start=[runtime.start, live.start, drain_before_stop_signals],
    on_stop=[runtime.stop, live.stop],
)

application = ProtocolTypeRouter({"http": http, "websocket": websocket, "lifespan": lifespan})
