"""SaslAuthenticate (key 36), versions 0-2. One PLAIN message; the hash runs in a thread; every refusal costs the same
time.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from broker_engine.errors import BrokerError
from broker_engine.handlers.api import Api, Call, Reply, Scope
from broker_engine.metadata.image import CredentialImage
from broker_engine.security.principal import Principal
from broker_engine.security.sasl import AuthenticateReply, NeedPasswordCheck, RawReply, Refuse, TokenVerdict
from broker_engine.wire.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse

if TYPE_CHECKING:
    from broker_engine.server.session import Session

log = logging.getLogger(__name__)


async def handle(request: SaslAuthenticateRequest, call: Call) -> Reply[SaslAuthenticateResponse]:
    verdict = await _settled(call.session, call.session.sasl.on_authenticate(request.auth_bytes))
    if isinstance(verdict, AuthenticateReply):
        response = SaslAuthenticateResponse(
            error_code=verdict.error_code,
            error_message=verdict.error_message,
            auth_bytes=verdict.auth_bytes,
            session_lifetime_ms=verdict.session_lifetime_ms,
        )
        return Reply(response, is_last=verdict.then_close)
    if isinstance(verdict, Refuse):
        return Reply(SaslAuthenticateResponse(error_code=verdict.error_code), is_last=True)
    return Reply(None, is_last=True)


def refuse(request: SaslAuthenticateRequest, error: BrokerError) -> SaslAuthenticateResponse:
    return SaslAuthenticateResponse(error_code=error.code, error_message=error.message)


async def sign_in_with_raw_token(session: Session, token: bytes) -> bytes | None:
    """The bare answer to a bare token (after SaslHandshake v0); None: close."""
    verdict = await _settled(session, session.sasl.on_raw_token(token))
    return verdict.data if isinstance(verdict, RawReply) else None


async def _settled(session: Session, verdict: TokenVerdict) -> TokenVerdict:
    """Carry out a password check, and hold back a refusal as long as the session says."""
    if isinstance(verdict, NeedPasswordCheck):
        verdict = await _check_password(session, verdict)
    delay_ms = getattr(verdict, "delay_ms", 0)
    if delay_ms:
        await asyncio.sleep(delay_ms / 1000)
    return verdict


async def _check_password(session: Session, need: NeedPasswordCheck) -> TokenVerdict:
    job = session.broker.accounts.password_job(
        need.claim,
        is_internal_listener=session.listener.is_internal,
        is_controller_listener=session.listener.is_controller,
        listener_tenant=session.listener.tenant,
    )
    credential = _credential_behind(session, need, job.principal)
    # Threads of their own: a flood of sign-ins must not hold up the metadata log's sync.
    principal = await asyncio.get_running_loop().run_in_executor(session.broker.password_threads, job.run)
    if principal is None:
        log.warning("sign-in of %r from %s refused", need.claim.username, session.peer)
    return session.on_password_checked(principal, credential)


def _credential_behind(
    session: Session, need: NeedPasswordCheck, principal: Principal | None
) -> CredentialImage | None:
    """The API key that the connection will act with: its own, or that of the gateway's caller; None for people and for
    the cluster's own users.
    """
    if principal is None or principal.is_internal:
        return None
    username = principal.name if principal.on_behalf_by else need.claim.username
    credential = session.broker.image.credential(username)
    return credential if credential is not None and credential.tenant == principal.tenant else None


API = Api(request=SaslAuthenticateRequest, scope=Scope.NAMELESS, handle=handle, refuse=refuse, is_before_sign_in=True)
