"""SCRAM verifiers as they lie in the database: a JSON list, bytes in base64.

The engine's own arithmetic is used, so that REST, PLAIN and SCRAM agree on every secret.
"""

from __future__ import annotations

import base64
from typing import TypedDict

from broker_engine.client.credentials import ScramMechanism, ScramVerifier, make_verifiers, new_secret, verify_plain
from control_plane.engine.interface import Verifier


class StoredVerifier(TypedDict):
    mechanism: str
    salt: str
    iterations: int
    stored_key: str
    server_key: str


def new_secret_with_verifiers() -> tuple[str, list[StoredVerifier]]:
    secret = new_secret()
    return secret, [_stored(verifier) for verifier in make_verifiers(secret)]


def matches(stored: list[StoredVerifier], secret: str) -> bool:
    """Takes milliseconds and the same time for every answer. One mechanism is enough: all stand for one secret."""
    return verify_plain(_loaded(stored[0]), secret)


def for_engine(stored: list[StoredVerifier]) -> tuple[Verifier, ...]:
    return tuple(
        Verifier(
            mechanism=item["mechanism"],
            salt=_bytes(item["salt"]),
            iterations=item["iterations"],
            stored_key=_bytes(item["stored_key"]),
            server_key=_bytes(item["server_key"]),
        )
        for item in stored
    )


def _stored(verifier: ScramVerifier) -> StoredVerifier:
    return StoredVerifier(
        mechanism=verifier.mechanism.wire_name,
        salt=_text(verifier.salt),
        iterations=verifier.iterations,
        stored_key=_text(verifier.stored_key),
        server_key=_text(verifier.server_key),
    )


def _loaded(item: StoredVerifier) -> ScramVerifier:
    return ScramVerifier(
        mechanism=ScramMechanism[item["mechanism"].replace("-", "_")],
        salt=_bytes(item["salt"]),
        iterations=item["iterations"],
        stored_key=_bytes(item["stored_key"]),
        server_key=_bytes(item["server_key"]),
    )


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")


def _bytes(text: str) -> bytes:
    return base64.b64decode(text, validate=True)
