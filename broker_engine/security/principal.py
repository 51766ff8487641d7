"""Principal: who a connection acts for, settled once per connection."""

from __future__ import annotations

from dataclasses import dataclass

from broker_engine.names import ROOT, is_valid_tenant_id

ANONYMOUS_NAME = "ANONYMOUS"
GATEWAY_NAME = "gateway"
CONTROL_PLANE_NAME = "control-plane"
BROKER_NAME = "broker"
INTERNAL_NAMES = frozenset({GATEWAY_NAME, CONTROL_PLANE_NAME})
"""Users of the cluster itself: they sign in with the cluster secret, on internal listeners only."""


@dataclass(frozen=True, slots=True)
class Principal:
    tenant: str
    name: str
    is_internal: bool = False
    """Signed in with the cluster secret on an internal listener, and acts for itself."""
    on_behalf_by: str | None = None
    """Who vouched for this principal: `gateway`, or None where the principal signed in itself."""

    @property
    def is_bare_gateway(self) -> bool:
        """The gateway without an authorization id: it may ask for ApiVersions and nothing else."""
        return self.is_internal and self.name == GATEWAY_NAME

    @property
    def is_broker(self) -> bool:
        """Another node of the cluster, on the controller's listener."""
        return self.is_internal and self.name == BROKER_NAME

    @property
    def is_root(self) -> bool:
        """May use every admin API and sees all tenants' names."""
        return self.tenant == ROOT and not self.is_bare_gateway

    @property
    def may_use_private_apis(self) -> bool:
        return self.is_internal and self.is_root

    @property
    def text(self) -> str:
        """Kafka's form, as in ACLs and audit lines."""
        return f"User:{self.name}"


def anonymous(listener_tenant: str) -> Principal:
    """The principal of a listener without authentication: the listener's tenant, nobody by name."""
    return Principal(listener_tenant, ANONYMOUS_NAME)


def internal(name: str) -> Principal:
    assert name in (*INTERNAL_NAMES, BROKER_NAME), name
    return Principal(ROOT, name, is_internal=True)


def on_behalf_of(authorization_id: str) -> Principal | None:
    """The gateway's caller by authorization id `tenant:principal`; None where that is not its form."""
    tenant, colon, name = authorization_id.partition(":")
    if not colon or not name or not is_valid_tenant_id(tenant):
        return None
    return Principal(tenant, name, on_behalf_by=GATEWAY_NAME)
