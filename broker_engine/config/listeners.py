"""Listeners in config texts: `[NAME=]HOST:PORT` (or Kafka's `NAME://HOST:PORT`) and the map of security protocols."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum

from broker_engine.config.knobs import ConfigError

DEFAULT_LISTENER_NAME = "default"
_NAME = re.compile(r"[A-Za-z0-9_-]+", re.ASCII)
_ENDPOINT = re.compile(
    r"(?:(?P<name>[^=:/\[\]]+)(?:=|://))?(?P<host>\[[^\]]*\]|[^:\[\]/=]*):(?P<port>[0-9]{1,5})", re.ASCII
)


class SecurityProtocol(Enum):
    PLAINTEXT = "PLAINTEXT"
    SSL = "SSL"
    SASL_PLAINTEXT = "SASL_PLAINTEXT"
    SASL_SSL = "SASL_SSL"

    @property
    def has_tls(self) -> bool:
        return self in (SecurityProtocol.SSL, SecurityProtocol.SASL_SSL)

    @property
    def has_sasl(self) -> bool:
        return self in (SecurityProtocol.SASL_PLAINTEXT, SecurityProtocol.SASL_SSL)


@dataclass(frozen=True, slots=True)
class Endpoint:
    name: str
    host: str
    """Without brackets; "" = every address."""
    port: int

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.name}={host}:{self.port}"


def parse_endpoint(text: str) -> Endpoint:
    match = _ENDPOINT.fullmatch(text.strip())
    if match is None or int(match["port"]) > 65_535:
        raise ConfigError(f'listener "{text}" is not [NAME=]HOST:PORT')
    name = match["name"] or DEFAULT_LISTENER_NAME
    if not is_listener_name(name):
        raise ConfigError(f'listener name "{name}" may have letters, digits, "_" and "-" only')
    return Endpoint(name, match["host"].strip("[]"), int(match["port"]))


def parse_endpoints(texts: Iterable[str]) -> tuple[Endpoint, ...]:
    endpoints = tuple(parse_endpoint(text) for text in texts)
    seen: set[str] = set()
    for endpoint in endpoints:
        if endpoint.name in seen:
            raise ConfigError(f'listener name "{endpoint.name}" is given twice')
        seen.add(endpoint.name)
    return endpoints


def parse_protocol_map(texts: Iterable[str]) -> Mapping[str, SecurityProtocol]:
    """`NAME:PROTOCOL` pairs."""
    protocols: dict[str, SecurityProtocol] = {}
    for text in texts:
        name, colon, protocol = text.partition(":")
        if not colon or not is_listener_name(name) or protocol not in SecurityProtocol.__members__:
            known = ", ".join(SecurityProtocol.__members__)
            raise ConfigError(f'listener.security.protocol.map: "{text}" is not NAME:PROTOCOL with one of {known}')
        protocols[name] = SecurityProtocol[protocol]
    return protocols


def is_listener_name(name: str) -> bool:
    return _NAME.fullmatch(name) is not None
