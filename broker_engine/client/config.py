"""The client's settings: frozen, checked when made."""

from __future__ import annotations

import ssl
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class BrokerAddress:
    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def parse_address(text: str) -> BrokerAddress:
    """`host:port` or `[v6]:port`."""
    host, separator, port = text.strip().rpartition(":")
    if not separator or not host or not port.isdigit() or not 0 < int(port) < 65_536:
        raise ValueError(f"not a broker address: {text!r}; write host:port, for example 127.0.0.1:9092")
    return BrokerAddress(host.removeprefix("[").removesuffix("]"), int(port))


@dataclass(frozen=True, slots=True)
class PlainCredentials:
    """SASL PLAIN. `authorization_id` asks to act for somebody else; only the gateway may (`tenant:principal`)."""

    username: str
    password: str = field(repr=False)
    authorization_id: str | None = None

    def token(self) -> bytes:
        parts = (self.authorization_id or "", self.username, self.password)
        if any("\0" in part for part in parts):
            raise ValueError("user name, password and authorization id cannot contain a zero byte")
        return "\0".join(parts).encode()


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientConfig:
    bootstrap: tuple[str, ...]
    client_id: str = "highwater"
    sasl: PlainCredentials | None = None
    tls: ssl.SSLContext | None = None
    request_timeout_ms: int = 30_000
    connect_timeout_ms: int = 10_000
    reconnect_backoff_ms: int = 50
    reconnect_backoff_ms_max: int = 1_000
    retry_backoff_ms: int = 100
    retry_backoff_ms_max: int = 1_000
    metadata_age_ms_max: int = 300_000
    unknown_topic_wait_ms: int = 5_000
    """How long a name that the broker does not know (yet) is asked for before UnknownTopic is raised."""
    fetch_connections_max: int = 64
    """Long polls per broker that `fetch_once` holds at one time; more wait for their turn."""
    decompressed_batch_bytes_max: int = 64 << 20
    """A stored batch is hostile until read: it may not unpack to more than this."""
    response_bytes_max: int = 128 << 20

    def __post_init__(self) -> None:
        if isinstance(self.bootstrap, str):
            raise ValueError("bootstrap is a tuple of host:port texts, not one text")
        if not self.bootstrap:
            raise ValueError("bootstrap names no broker; give at least one host:port")
        for text in self.bootstrap:
            parse_address(text)
        for name in ("request_timeout_ms", "connect_timeout_ms", "reconnect_backoff_ms", "retry_backoff_ms"):
            if getattr(self, name) <= 0:
                raise ValueError(f"{name} must be above 0")

    @property
    def addresses(self) -> tuple[BrokerAddress, ...]:
        return tuple(parse_address(text) for text in self.bootstrap)
