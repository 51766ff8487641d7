"""AlterCredentials (key 10002, private), version 0: API keys as SCRAM verifiers; a secret itself never comes here."""

from __future__ import annotations

from broker_engine.errors import BrokerError
from broker_engine.handlers.api import Api, Call, Scope
from broker_engine.metadata.controller import CredentialChange, alter_credentials, scram_verifier
from broker_engine.wire.messages.internal_alter_credentials import (
    AlterCredentialsCredential,
    AlterCredentialsRequest,
    AlterCredentialsResponse,
    AlterCredentialsResult,
)


async def handle(request: AlterCredentialsRequest, call: Call) -> AlterCredentialsResponse:
    changes, refused = [], []
    for credential in request.credentials:
        try:
            changes.append(_change(credential))
        except BrokerError as error:
            refused.append(_refused(credential, error))
    results = await call.broker.metadata.commit(lambda image: alter_credentials(image, changes))
    answers = [
        AlterCredentialsResult(
            username=result.username, error_code=result.error_code, error_message=result.error_message
        )
        for result in results
    ]
    return AlterCredentialsResponse(results=[*answers, *refused])


def refuse(request: AlterCredentialsRequest, error: BrokerError) -> AlterCredentialsResponse:
    return AlterCredentialsResponse(results=[_refused(credential, error) for credential in request.credentials])


def _change(credential: AlterCredentialsCredential) -> CredentialChange:
    return CredentialChange(
        username=credential.username,
        tenant_id=credential.tenant_id,
        principal=credential.principal,
        verifiers=[
            scram_verifier(m.mechanism, bytes(m.salt), m.iterations, bytes(m.stored_key), bytes(m.server_key))
            for m in credential.mechanisms
        ],
        deleted=credential.deleted,
    )


def _refused(credential: AlterCredentialsCredential, error: BrokerError) -> AlterCredentialsResult:
    return AlterCredentialsResult(
        username=credential.username, error_code=error.code, error_message=error.message or None
    )


API = Api(request=AlterCredentialsRequest, scope=Scope.PRIVATE, handle=handle, refuse=refuse, is_for_controller=True)
