"""Highwater as `python -m broker_engine serve` runs it; root, on loopback."""

from __future__ import annotations

import sys

from benchmarks.brokers.broker import Broker
from benchmarks.brokers.certificate import make_certificate


class Highwater(Broker):
    side = "highwater"

    def prepare(self) -> None:
        if self.is_tls:
            make_certificate(self.folder)

    def command(self) -> list[str]:
        serve = [sys.executable, "-m", "broker_engine", "serve", "--data-dir", str(self.folder / "data")]
        return [*serve, "--listen", f"plain=127.0.0.1:{self.port}", *(self._tls() if self.is_tls else [])]

    def _tls(self) -> list[str]:
        settings = {
            "listener.security.protocol.map": "plain:PLAINTEXT,tls:SSL",
            "ssl.certificate.file": str(self.folder / "certificate.pem"),
            "ssl.key.file": str(self.folder / "key.pem"),
        }
        listen = ["--listen", f"tls=127.0.0.1:{self.tls_port}"]
        return listen + [word for name, value in settings.items() for word in ("--set", f"{name}={value}")]

    def topic_configs(self, *, durability: str) -> dict[str, str]:
        return {} if durability == "default" else {"ack.durability": durability}
