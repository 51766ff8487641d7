"""Naming groups for a caller: the one place where handlers turn wire names of groups into physical ones, and back."""

from __future__ import annotations

from broker_engine.errors import BrokerError, ErrorCode
from broker_engine.handlers.api import Call
from broker_engine.names import ROOT, from_wire, physical, to_wire

_NAME_BYTES_MAX = (1 << 15) - 1
"""What a string can hold in the records of a group, which are Kafka's."""


def group_name(call: Call, text: str) -> str:
    """BrokerError 24 for no name at all: a group has one."""
    if not text:
        raise BrokerError(ErrorCode.INVALID_GROUP_ID, "a group needs a name")
    return any_group_name(call, text)


def any_group_name(call: Call, text: str) -> str:
    """Offsets may be kept under the empty name, by whoever assigns itself. BrokerError 24 for a name that does not fit
    into a record with its tenant's before it.
    """
    name = physical(from_wire(text, call.tenant))
    if len(name.encode()) > _NAME_BYTES_MAX:
        raise BrokerError(ErrorCode.INVALID_GROUP_ID, "the group's name is too long")
    return name


def client_host(call: Call) -> str:
    """Where a member sits, as Kafka writes it."""
    return f"/{call.session.peer.rpartition(':')[0]}"


def visible_name(call: Call, text: str) -> str | None:
    """A stored group as this caller sees it; None where it is somebody else's."""
    name = from_wire(text, ROOT)  # as root sees it: also what Apache Kafka wrote, which has no tenants
    if not call.principal.is_root and name.tenant != call.tenant:
        return None
    return to_wire(name, call.tenant)
