"""A certificate of one day for 127.0.0.1, made by the openssl command."""

from __future__ import annotations

import subprocess
from pathlib import Path


def make_certificate(folder: Path) -> None:
    """`certificate.pem` and `key.pem` (PKCS#8), and `keystore.pem` with both, as Kafka wants them."""
    certificate, key = folder / "certificate.pem", folder / "key.pem"
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", "-subj", "/CN=127.0.0.1"]
    command += ["-addext", "subjectAltName=IP:127.0.0.1", "-keyout", str(key), "-out", str(certificate)]
    subprocess.run(command, check=True, capture_output=True, timeout=60)
    (folder / "keystore.pem").write_text(key.read_text() + certificate.read_text())
