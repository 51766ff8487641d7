"""Secrets as SCRAM verifiers (RFC 5802, RFC 7677): enough to check a secret, too little to sign in with.

The same verifier serves REST, PLAIN and, later, SCRAM on the wire. Secrets are hashed as UTF-8 without SASLprep, as
Kafka and its clients do; ours are base64, where both agree. PBKDF2 takes milliseconds: call it from a thread.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import IntEnum

ITERATIONS_DEFAULT = 4096
ITERATIONS_MIN = 4096
ITERATIONS_MAX = 16_384
SALT_SIZE_BYTES = 32
SECRET_SIZE_BYTES = 32
SECRET_LENGTH_MAX = 1024
"""A longer secret is refused before it is hashed: the hash would cost more with every byte."""


class ScramMechanism(IntEnum):
    """Kafka's numbers for the mechanisms."""

    SCRAM_SHA_256 = 1
    SCRAM_SHA_512 = 2

    @property
    def hash_name(self) -> str:
        return "sha256" if self is ScramMechanism.SCRAM_SHA_256 else "sha512"

    @property
    def wire_name(self) -> str:
        return self.name.replace("_", "-")

    @property
    def key_size_bytes(self) -> int:
        return 32 if self is ScramMechanism.SCRAM_SHA_256 else 64


@dataclass(frozen=True, slots=True)
class ScramVerifier:
    mechanism: ScramMechanism
    salt: bytes
    iterations: int
    stored_key: bytes = field(repr=False)
    server_key: bytes = field(repr=False)


def new_secret(random_bytes: Callable[[int], bytes]) -> str:
    """256 random bits as text that passes through shells, URLs and HTTP Basic unchanged."""
    return base64.urlsafe_b64encode(random_bytes(SECRET_SIZE_BYTES)).rstrip(b"=").decode("ascii")


def make_verifier(
    secret: str,
    salt: bytes,
    iterations: int = ITERATIONS_DEFAULT,
    mechanism: ScramMechanism = ScramMechanism.SCRAM_SHA_256,
) -> ScramVerifier:
    salted = hashlib.pbkdf2_hmac(mechanism.hash_name, secret.encode("utf-8"), salt, iterations)
    client_key = hmac.digest(salted, b"Client Key", mechanism.hash_name)
    stored_key = hashlib.new(mechanism.hash_name, client_key).digest()
    server_key = hmac.digest(salted, b"Server Key", mechanism.hash_name)
    return ScramVerifier(mechanism, salt, iterations, stored_key, server_key)


def make_verifiers(
    secret: str, random_bytes: Callable[[int], bytes], iterations: int = ITERATIONS_DEFAULT
) -> tuple[ScramVerifier, ScramVerifier]:
    """One verifier per mechanism, each with its own salt."""
    sha_256 = make_verifier(secret, random_bytes(SALT_SIZE_BYTES), iterations, ScramMechanism.SCRAM_SHA_256)
    sha_512 = make_verifier(secret, random_bytes(SALT_SIZE_BYTES), iterations, ScramMechanism.SCRAM_SHA_512)
    return sha_256, sha_512


def verify_plain(verifier: ScramVerifier, secret: str) -> bool:
    """True if the verifier was made from `secret`. Takes the same time whatever the answer."""
    if len(secret) > SECRET_LENGTH_MAX:
        return False
    candidate = make_verifier(secret, verifier.salt, verifier.iterations, verifier.mechanism)
    return hmac.compare_digest(candidate.stored_key, verifier.stored_key)


def fake_verifier(
    username: str, pepper: bytes, mechanism: ScramMechanism = ScramMechanism.SCRAM_SHA_256
) -> ScramVerifier:
    """A verifier for a user who does not exist: the same salt at every try, and no secret that fits.

    `pepper` is known to the cluster only, so that nobody outside can tell a fake salt from a real one.
    """
    identity = f"{mechanism.wire_name}\0{username}".encode()
    salt = hmac.digest(pepper, b"salt\0" + identity, "sha256")[:SALT_SIZE_BYTES]
    key = hmac.digest(pepper, b"key\0" + identity, mechanism.hash_name)
    return ScramVerifier(mechanism, salt, ITERATIONS_DEFAULT, key, key)
