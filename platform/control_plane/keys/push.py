"""Bringing one key to the engine: its verifiers while it lives, nothing once it is revoked."""

from __future__ import annotations

import logging

from control_plane.engine.factory import get_engine
from control_plane.engine.interface import Credential, EngineError
from control_plane.keys.models import ApiKey
from control_plane.keys.verifiers import for_engine

log = logging.getLogger(__name__)


def credential_of(key: ApiKey) -> Credential:
    return Credential(key.id, key.tenant_id, key.principal, for_engine(key.verifiers))


def push_key(key_id: str, *, budget_s: float) -> bool:
    """True when the engine has it, or has let go of it."""
    key = ApiKey.objects.get(pk=key_id)
    try:
        if key.revoked_at is None:
            get_engine().push_credentials([credential_of(key)], timeout_s=budget_s)
        else:
            get_engine().remove_credentials([key.id], timeout_s=budget_s)
    except EngineError as error:
        log.warning("key %s waits for the engine: %s", key_id, error)
        return False
    return True
