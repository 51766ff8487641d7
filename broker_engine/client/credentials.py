"""Secrets of API keys, for the control plane: a secret is shown once and kept only as SCRAM verifiers."""

from __future__ import annotations

import secrets

from broker_engine.security import scram
from broker_engine.security.scram import ScramMechanism, ScramVerifier, verify_plain

__all__ = ["ScramMechanism", "ScramVerifier", "make_verifiers", "new_secret", "verify_plain"]


def new_secret() -> str:
    """256 random bits as text."""
    return scram.new_secret(secrets.token_bytes)


def make_verifiers(secret: str) -> tuple[ScramVerifier, ScramVerifier]:
    """SCRAM-SHA-256 and SCRAM-SHA-512, each with its own salt. Takes milliseconds: call it from a thread."""
    return scram.make_verifiers(secret, secrets.token_bytes)
