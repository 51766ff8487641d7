"""AlterCredentials: API keys as SCRAM verifiers. A secret never comes here. May be sent twice without harm."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from broker_engine.errors import BrokerError, ErrorCode
from broker_engine.metadata.decision import Decision, repeated
from broker_engine.metadata.image import CredentialImage, MetadataImage
from broker_engine.metadata.records import CredentialRecord, Record, RemoveCredentialRecord, ScramMechanismField
from broker_engine.security.accounts import Account
from broker_engine.security.plain import USERNAME_BYTES_MAX
from broker_engine.security.principal import INTERNAL_NAMES
from broker_engine.security.scram import ITERATIONS_MAX, ITERATIONS_MIN, ScramMechanism, ScramVerifier

_SALT_BYTES_MAX = 256


@dataclass(frozen=True, slots=True)
class CredentialChange:
    username: str
    tenant_id: str = ""
    principal: str = ""
    verifiers: Sequence[ScramVerifier] = field(default=(), repr=False)
    deleted: bool = False


@dataclass(frozen=True, slots=True)
class CredentialResult:
    username: str
    error_code: ErrorCode = ErrorCode.NONE
    error_message: str | None = None


def alter_credentials(image: MetadataImage, changes: Sequence[CredentialChange]) -> Decision[CredentialResult]:
    twice = repeated(change.username for change in changes)
    records, results = list[Record](), list[CredentialResult]()
    for change in {change.username: change for change in changes}.values():
        try:
            if change.username in twice:
                raise BrokerError(ErrorCode.DUPLICATE_RESOURCE, "A username may stand once in a request.")
            records += _remove(image, change) if change.deleted else _put(image, change)
        except BrokerError as error:
            results.append(CredentialResult(change.username, error.code, error.message))
            continue
        results.append(CredentialResult(change.username))
    return Decision(tuple(records), tuple(results))


def account_of(credential: CredentialImage) -> Account:
    """What `security.accounts` checks a password against: always one mechanism, so that all checks cost the same."""
    return Account(credential.tenant, credential.principal, credential.verifiers[ScramMechanism.SCRAM_SHA_256])


def scram_verifier(mechanism: int, salt: bytes, iterations: int, stored_key: bytes, server_key: bytes) -> ScramVerifier:
    """From the wire's fields; UNSUPPORTED_SASL_MECHANISM for a number that is none."""
    try:
        kind = ScramMechanism(mechanism)
    except ValueError:
        raise BrokerError(ErrorCode.UNSUPPORTED_SASL_MECHANISM, f"Mechanism {mechanism} is not known.") from None
    return ScramVerifier(kind, salt, iterations, stored_key, server_key)


def _remove(image: MetadataImage, change: CredentialChange) -> list[Record]:
    current = image.credential(change.username)
    if current is None:
        return []
    return [RemoveCredentialRecord(tenant=current.tenant, username=current.username)]


def _put(image: MetadataImage, change: CredentialChange) -> list[Record]:
    _check_names(image, change)
    verifiers = {verifier.mechanism: verifier for verifier in change.verifiers}
    if len(verifiers) != len(change.verifiers) or ScramMechanism.SCRAM_SHA_256 not in verifiers:
        raise _unacceptable("One verifier per mechanism is needed, SCRAM-SHA-256 among them.")
    for verifier in verifiers.values():
        _check_verifier(verifier)
    wanted = CredentialImage(change.username, change.tenant_id, change.principal, verifiers)
    return [] if image.credential(change.username) == wanted else [_record(wanted, verifiers)]


def _check_names(image: MetadataImage, change: CredentialChange) -> None:
    if not change.username or len(change.username.encode()) > USERNAME_BYTES_MAX or "\0" in change.username:
        raise _unacceptable(f"A username has 1 to {USERNAME_BYTES_MAX} bytes.")
    if change.username in INTERNAL_NAMES:
        raise _unacceptable("This username belongs to the cluster itself.")
    if not change.principal:
        raise _unacceptable("A credential needs a principal.")
    if image.tenant(change.tenant_id) is None:
        raise BrokerError(ErrorCode.RESOURCE_NOT_FOUND, "The tenant does not exist.")
    current = image.credential(change.username)
    if current is not None and current.tenant != change.tenant_id:
        raise BrokerError(ErrorCode.DUPLICATE_RESOURCE, "The username is taken.")


def _check_verifier(verifier: ScramVerifier) -> None:
    if not ITERATIONS_MIN <= verifier.iterations <= ITERATIONS_MAX:
        raise _unacceptable(f"Iterations must be between {ITERATIONS_MIN} and {ITERATIONS_MAX}.")
    if not 0 < len(verifier.salt) <= _SALT_BYTES_MAX:
        raise _unacceptable(f"A salt has 1 to {_SALT_BYTES_MAX} bytes.")
    sizes = {len(verifier.stored_key), len(verifier.server_key)}
    if sizes != {verifier.mechanism.key_size_bytes}:
        raise _unacceptable(f"Keys of {verifier.mechanism.wire_name} have {verifier.mechanism.key_size_bytes} bytes.")


def _record(wanted: CredentialImage, verifiers: Mapping[ScramMechanism, ScramVerifier]) -> CredentialRecord:
    mechanisms = [
        ScramMechanismField(
            mechanism=kind,
            salt=verifier.salt,
            iterations=verifier.iterations,
            stored_key=verifier.stored_key,
            server_key=verifier.server_key,
        )
        for kind, verifier in sorted(verifiers.items())
    ]
    return CredentialRecord(
        tenant=wanted.tenant, username=wanted.username, principal=wanted.principal, mechanisms=mechanisms
    )


def _unacceptable(text: str) -> BrokerError:
    return BrokerError(ErrorCode.UNACCEPTABLE_CREDENTIAL, text)
