"""What the config APIs share: which resource a caller means, and which it may touch.

Topics and groups are looked up among the caller's own. Brokers are root's: to a tenant they are there, but not its to
see or change.
"""

from __future__ import annotations

from collections.abc import Iterable

from broker_engine.config.group import check_group_bounds
from broker_engine.errors import BrokerError, ErrorCode
from broker_engine.handlers.api import Call
from broker_engine.metadata.controller import Resource
from broker_engine.metadata.records import RESOURCE_BROKER, RESOURCE_GROUP, RESOURCE_TOPIC
from broker_engine.names import ROOT, Name, from_wire


def resource_of(resource_type: int, resource_name: str, call: Call) -> Resource:
    """BrokerError 31 where it is the cluster's and the caller is a tenant."""
    if resource_type in (RESOURCE_TOPIC, RESOURCE_GROUP):
        return Resource(resource_type, from_wire(resource_name, call.tenant))
    if resource_type == RESOURCE_BROKER and not call.principal.is_root:
        raise BrokerError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, "brokers are configured by the platform's operators")
    return Resource(resource_type, Name(ROOT, resource_name))


def check_bounds(resource: Resource, wanted: Iterable[tuple[str, str | None]], call: Call) -> None:
    """BrokerError 40 where this broker's configuration allows a group no such value."""
    if resource.type == RESOURCE_GROUP:
        for name, value in wanted:
            check_group_bounds(name, value, call.broker.config)
