"""The cluster secret: what the gateway, the control plane and other brokers show to internal listeners.

From HIGHWATER_CLUSTER_SECRET, or from a file of mode 0600 that the first process to need it makes. This is the one file
of the package that touches the machine.
"""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Mapping
from pathlib import Path

from broker_engine.security.scram import new_secret

ENVIRONMENT_NAME = "HIGHWATER_CLUSTER_SECRET"
SECRET_LENGTH_MIN = 32


class ClusterSecretError(Exception):
    """The secret cannot be used; the text says what to do, never the secret."""


def load_or_create(path: Path, environment: Mapping[str, str] = os.environ) -> str:
    """The secret, from the environment if it is there, else from `path`, which is made if it is missing."""
    from_environment = environment.get(ENVIRONMENT_NAME)
    if from_environment is not None:
        return _checked(from_environment.strip(), ENVIRONMENT_NAME)
    if not path.exists():
        _create(path)
    return _checked(_read(path), str(path))


def _read(path: Path) -> str:
    mode = stat.S_IMODE(path.stat().st_mode)
    if mode & 0o077:
        raise ClusterSecretError(f"{path} has mode {mode:04o}: others could read the secret; run chmod 600 {path}")
    return path.read_text(encoding="ascii").strip()


def _create(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    _write_private(temporary, new_secret(secrets.token_bytes) + "\n")
    try:
        # A link, not a rename: of two processes that start at once the first wins, and both then read its secret.
        os.link(temporary, path)
    except FileExistsError:
        return
    finally:
        temporary.unlink()


def _write_private(path: Path, text: str) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="ascii") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())


def _checked(secret: str, source: str) -> str:
    if len(secret) < SECRET_LENGTH_MIN:
        raise ClusterSecretError(f"the cluster secret in {source} is shorter than {SECRET_LENGTH_MIN} characters")
    return secret
