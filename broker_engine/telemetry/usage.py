"""Running totals per tenant since the broker started: never differences, so that a lost record loses no usage."""

from __future__ import annotations

from collections.abc import ItemsView
from dataclasses import dataclass


@dataclass(slots=True)
class TenantUsage:
    bytes_in: int = 0
    bytes_out: int = 0
    records_in: int = 0
    requests: int = 0


class Usage:
    def __init__(self) -> None:
        self._by_tenant: dict[str, TenantUsage] = {}

    def of(self, tenant: str) -> TenantUsage:
        usage = self._by_tenant.get(tenant)
        if usage is None:
            usage = self._by_tenant[tenant] = TenantUsage()
        return usage

    def items(self) -> ItemsView[str, TenantUsage]:
        return self._by_tenant.items()
