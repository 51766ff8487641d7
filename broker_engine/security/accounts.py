"""From what a client claims to the work that proves it: which verifier to try, and whom success makes.

Every claim, also an absurd one, becomes a `PasswordJob` of the same cost: a client learns nothing from the time that a
refusal takes. The look-ups happen here, on the event loop; `PasswordJob.run` has plain values and may run in a thread.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field

from broker_engine.names import ROOT
from broker_engine.security.plain import PlainMessage
from broker_engine.security.principal import (
    BROKER_NAME,
    GATEWAY_NAME,
    INTERNAL_NAMES,
    Principal,
    internal,
    on_behalf_of,
)
from broker_engine.security.scram import ScramVerifier, fake_verifier, make_verifier, verify_plain


@dataclass(frozen=True, slots=True)
class Account:
    """An API key as the metadata image knows it."""

    tenant: str
    principal: str
    verifier: ScramVerifier


@dataclass(frozen=True, slots=True)
class PasswordJob:
    password: str = field(repr=False)
    verifier: ScramVerifier
    principal: Principal | None
    """Whom the right password makes; None where no password would do."""

    def run(self) -> Principal | None:
        is_right = verify_plain(self.verifier, self.password)
        return self.principal if is_right else None


class Accounts:
    """Looks claims up. One per broker; `find_account` and `tenant_exists` read the broker's current image."""

    def __init__(
        self,
        cluster_secret: str,
        find_account: Callable[[str], Account | None],
        tenant_exists: Callable[[str], bool],
    ) -> None:
        self._pepper = hashlib.sha256(b"fake salts\0" + cluster_secret.encode()).digest()
        self._internal_verifier = make_verifier(cluster_secret, hashlib.sha256(self._pepper).digest())
        self._find_account = find_account
        self._tenant_exists = tenant_exists

    def password_job(
        self,
        claim: PlainMessage,
        *,
        is_internal_listener: bool,
        is_controller_listener: bool = False,
        listener_tenant: str = ROOT,
    ) -> PasswordJob:
        """`listener_tenant` is ROOT for a listener that is bound to no tenant: there any tenant's key may sign in."""
        if is_controller_listener:
            return self._broker_job(claim)
        if is_internal_listener:
            return self._internal_job(claim)
        account = self._find_account(claim.username)
        if account is None:
            return self._hopeless_job(claim)
        is_allowed = claim.authorization_id is None and listener_tenant in (ROOT, account.tenant)
        principal = Principal(account.tenant, account.principal) if is_allowed else None
        return PasswordJob(claim.password, account.verifier, principal)

    def _broker_job(self, claim: PlainMessage) -> PasswordJob:
        """Nodes talk to nodes there, and nobody else comes in."""
        if claim.username != BROKER_NAME:
            return self._hopeless_job(claim)
        principal = internal(BROKER_NAME) if claim.authorization_id is None else None
        return PasswordJob(claim.password, self._internal_verifier, principal)

    def _internal_job(self, claim: PlainMessage) -> PasswordJob:
        if claim.username not in INTERNAL_NAMES:
            return self._hopeless_job(claim)
        return PasswordJob(claim.password, self._internal_verifier, self._internal_principal(claim))

    def _internal_principal(self, claim: PlainMessage) -> Principal | None:
        if claim.authorization_id is None:
            return internal(claim.username)
        if claim.username != GATEWAY_NAME:
            return None
        caller = on_behalf_of(claim.authorization_id)
        return caller if caller is not None and self._tenant_exists(caller.tenant) else None

    def _hopeless_job(self, claim: PlainMessage) -> PasswordJob:
        return PasswordJob(claim.password, fake_verifier(claim.username, self._pepper), None)
