"""Naming transactional ids for a caller, and the codes that its versions know."""

from __future__ import annotations

from broker_engine.errors import BrokerError, ErrorCode
from broker_engine.handlers.api import Call
from broker_engine.names import from_wire, physical


def transaction_name(call: Call, text: str) -> str:
    """The id's physical text. A foreign one cannot be asked for: it is the caller's own, empty. BrokerError 42."""
    if not text:
        raise BrokerError(ErrorCode.INVALID_REQUEST, "a transactional id is not empty")
    return physical(from_wire(text, call.tenant))


def code_for(code: ErrorCode, version: int, *, first_version_with_fenced: int) -> ErrorCode:
    """Older clients do not know PRODUCER_FENCED."""
    if code is ErrorCode.PRODUCER_FENCED and version < first_version_with_fenced:
        return ErrorCode.INVALID_PRODUCER_EPOCH
    return code
