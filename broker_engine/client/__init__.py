"""The engine's own Kafka client: connection, metadata, producer, consumer, admin. See README.md.

Safe to share between the tasks of one event loop; not safe across threads.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from broker_engine.client.public import *  # noqa: F403 - its __all__ is ours
else:

    def __getattr__(name: str) -> object:
        """A broker takes connections and errors from their modules: producers and admins would only delay its start."""
        return getattr(import_module("broker_engine.client.public"), name)
