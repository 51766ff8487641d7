"""URLs of the REST resources, included by `web.urls` under /api/v1/."""

from __future__ import annotations

from django.urls import URLPattern, URLResolver

urlpatterns: list[URLPattern | URLResolver] = []
