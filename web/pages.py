"""The dashboard's one page, health and readiness, and what answers where nothing else does."""

from __future__ import annotations

from pathlib import Path

import aiofiles
from asgiref.sync import sync_to_async
from django.db import connection
from django.http import HttpRequest, HttpResponse, JsonResponse

from api import problems
from control_plane.live.service import live

DASHBOARD = Path(__file__).resolve().parent / "static" / "dashboard" / "index.html"
NOT_BUILT = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Highwater</title></head>
<body><h1>The dashboard has not been built yet</h1>
<p>Run <code>make frontend</code> in the repository (it needs Node 20 or newer), then load this page again.</p>
<p>The REST API is up: <a href="/api/v1/docs">/api/v1/docs</a>.</p></body></html>
"""


async def dashboard(request: HttpRequest) -> HttpResponse:
    """The same page for every client-side route; it must be asked for anew each time, its assets never."""
    if request.method not in ("GET", "HEAD"):
        return HttpResponse(status=405, headers={"Allow": "GET, HEAD"})
    try:
        async with aiofiles.open(DASHBOARD, "rb") as file:
            page = await file.read()
    except FileNotFoundError:
        return HttpResponse(NOT_BUILT, status=503, headers={"Retry-After": "10"})
    return HttpResponse(page, headers={"Cache-Control": "no-cache"})


async def healthz(request: HttpRequest) -> JsonResponse:
    """This process answers; nothing else is asked."""
    return JsonResponse({"status": "ok"})


async def readyz(request: HttpRequest) -> JsonResponse:
    """Database and engine are within reach, so that requests will be served."""
    checks = {"database": await sync_to_async(_database_answers)(), "engine": live.is_connected}
    is_ready = all(checks.values())
    return JsonResponse(
        {"status": "ok" if is_ready else "not ready", "checks": checks}, status=200 if is_ready else 503
    )


async def no_such_api(request: HttpRequest) -> HttpResponse:
    return problems.not_found("There is nothing here", error_code=40400).response()


def not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    return problems.not_found("There is nothing here").response()


def broken(request: HttpRequest) -> HttpResponse:
    return problems.internal_error().response()


def _database_answers() -> bool:
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
    except Exception:  # whatever the driver raises, the answer is the same
        return False
    return True
