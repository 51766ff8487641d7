"""Highwater as `python -m broker_engine serve` runs it; root, on loopback."""

from __future__ import annotations

import compileall
import functools
import sys
from pathlib import Path

import broker_engine
from benchmarks.brokers.broker import Broker
from benchmarks.brokers.certificate import make_certificate

_SERVE = "from broker_engine.__main__ import main; import sys; sys.exit(main())"
_SERVE_BY_READ_AND_WRITE = f"import broker_engine.net.sockets as s; s.SENDFILE_BYTES_MIN = 1 << 60; {_SERVE}"


class Highwater(Broker):
    side = "highwater"
    is_copying = False
    """Without sendfile: every range is read and written, as short ones always are. The same broker otherwise."""

    def prepare(self) -> None:
        compile_sources()
        if self.is_tls:
            make_certificate(self.folder)

    def command(self) -> list[str]:
        program = ["-c", _SERVE_BY_READ_AND_WRITE] if self.is_copying else ["-m", "broker_engine"]
        serve = [sys.executable, *program, "serve", "--data-dir", str(self.folder / "data")]
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


@functools.cache
def compile_sources() -> None:
    """As an installation does: where PYTHONDONTWRITEBYTECODE is set, every start would compile them anew."""
    compileall.compile_dir(Path(broker_engine.__file__).parent, quiet=1)
