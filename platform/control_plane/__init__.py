"""The Django control plane: who may have what. The engine's metadata log owns what is."""

from __future__ import annotations

from control_plane.celery import app as celery_app

__all__ = ["celery_app"]
