"""The cluster secret, by which brokers, gateway and control plane trust each other: made once, for its owner only."""

from __future__ import annotations

import os
import secrets
from pathlib import Path

SECRET_BYTES = 32


def ensure_secret(path: Path) -> None:
    """After this the file exists with mode 0600. A secret that is there is never replaced."""
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        return
    with os.fdopen(descriptor, "w", encoding="ascii") as file:
        file.write(secrets.token_hex(SECRET_BYTES) + "\n")
