"""AlterCredentials (key 10002, private), version 0: SCRAM verifiers of API keys; a secret itself never travels.

`mechanism` is 1 for SCRAM-SHA-256 and 2 for SCRAM-SHA-512.
"""

from __future__ import annotations

from broker_engine.wire.api import declare
from broker_engine.wire.kinds import Array, Bool, Bytes, Int8, Int16, Int32, String
from broker_engine.wire.schema import Message, Struct


class AlterCredentialsMechanism(Struct):
    mechanism: Int8 = 1
    salt: Bytes = b""
    iterations: Int32 = 0
    stored_key: Bytes = b""
    server_key: Bytes = b""


class AlterCredentialsCredential(Struct):
    username: String = ""
    tenant_id: String = ""
    principal: String = ""
    mechanisms: Array[AlterCredentialsMechanism] = ()
    deleted: Bool = False


class AlterCredentialsRequest(Message, versions="0"):
    credentials: Array[AlterCredentialsCredential] = ()


class AlterCredentialsResult(Struct):
    username: String = ""
    error_code: Int16 = 0
    error_message: String | None = None


class AlterCredentialsResponse(Message, versions="0"):
    results: Array[AlterCredentialsResult] = ()


API = declare(10002, "AlterCredentials", AlterCredentialsRequest, AlterCredentialsResponse, is_internal=True)
