"""The app exists so that Django finds `manage.py up`; it has no models."""

from __future__ import annotations

from django.apps import AppConfig


class SupervisorConfig(AppConfig):
    name = "control_plane.supervisor"
