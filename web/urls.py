"""All URLs of the site: the API, health, and the dashboard for whatever is left."""

from __future__ import annotations

from django.urls import include, path, re_path

from web import pages

urlpatterns = [
    path("api/v1/", include("api.gateway.urls")),
    path("api/v1/", include("api.urls")),
    path("healthz", pages.healthz),
    path("readyz", pages.readyz),
    re_path(r"^api(?:/|$)", pages.no_such_api),
    re_path(r"", pages.dashboard),
]

handler404 = "web.pages.not_found"
handler500 = "web.pages.broken"
