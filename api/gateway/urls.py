"""URLs of the data plane, under /api/v1/."""

from __future__ import annotations

from django.urls import path

from api.gateway import views

urlpatterns = [
    path("topics/<str:topic>/records", views.produce),
    path("topics/<str:topic>/partitions/<int:partition>/records", views.fetch_records),
    path("ws-tickets", views.ws_tickets),
]
