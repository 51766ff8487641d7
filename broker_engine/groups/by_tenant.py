"""What is known of each group, by its physical text, that also knows which of them are one tenant's: nobody who lists
its own groups should pay for everybody else's.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, TypeVar

from broker_engine.names import ROOT, from_wire

V = TypeVar("V")


class ByTenant(dict[str, V]):
    """A dict, because it is read with every heartbeat and commit, and changes seldom."""

    update = clear = popitem = None  # type: ignore[assignment] # they would pass by the names

    def __init__(self) -> None:
        super().__init__()
        self._names: dict[str, dict[str, None]] = {}

    def names_of(self, tenant: str) -> Collection[str]:
        return self._names.get(tenant, {}).keys()

    def __setitem__(self, name: str, value: V) -> None:
        super().__setitem__(name, value)
        self._names.setdefault(_tenant_of(name), {})[name] = None

    def __delitem__(self, name: str) -> None:
        super().__delitem__(name)
        tenant = _tenant_of(name)
        del self._names[tenant][name]
        if not self._names[tenant]:
            del self._names[tenant]

    def setdefault(self, name: str, default: V) -> V:
        if name not in self:
            self[name] = default
        return self[name]

    def pop(self, name: str, default: Any = None) -> Any:
        found = self.get(name, default)
        if name in self:
            del self[name]
        return found


def _tenant_of(name: str) -> str:
    return from_wire(name, ROOT).tenant
