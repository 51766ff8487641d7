"""Fixtures of the control plane's tests: two tenants, an engine and a task queue in memory."""

from __future__ import annotations

from tests.control_plane.world import acme, demo, empty_cache, engine, queue, quick_passwords

__all__ = ["acme", "demo", "empty_cache", "engine", "queue", "quick_passwords"]
