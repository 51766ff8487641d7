"""Named listeners (contracts.md section 1): what the configs make of each, checked before anything is bound."""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from broker_engine.config import BrokerConfig, ConfigError, Endpoint, SecurityProtocol, parse_endpoint
from broker_engine.names import ROOT

CONTROLLER_NAME = "controller"
_EVERY_ADDRESS = ("", "0.0.0.0", "::")  # noqa: S104 - to be recognized, not bound


@dataclass(frozen=True, slots=True, kw_only=True)
class ListenerSpec:
    endpoint: Endpoint
    protocol: SecurityProtocol
    tenant: str = ROOT
    is_internal: bool = False
    """Asks for the cluster secret; carries the private APIs."""
    is_controller: bool = False
    """The broker's own entry in --quorum: nothing but broker-to-broker traffic."""
    advertised: Endpoint | None = None

    @property
    def name(self) -> str:
        return self.endpoint.name

    def describe(self, host: str, port: int) -> str:
        """For the log: where, how, and as whom one comes in."""
        owner = f"tenant {self.tenant}" if self.tenant else "root"
        who = "brokers" if self.is_controller else "internal" if self.is_internal else owner
        return f"{Endpoint(self.name, host, port)} {self.protocol.value} ({who})"


def make_specs(config: BrokerConfig) -> tuple[ListenerSpec, ...]:
    """All listeners of this node, the controller's last. ConfigError where one would be an open door.

    Without the role of a broker there is none for clients: nobody would ever answer there.
    """
    advertised = {endpoint.name: endpoint for endpoint in config.advertised_endpoints}
    names = [endpoint.name for endpoint in config.endpoints]
    _check_known(advertised, names, "advertised.listeners")
    _check_known(config.listener_tenants, names, "listener.name.NAME.tenant")
    if CONTROLLER_NAME in names:
        raise ConfigError(f'"{CONTROLLER_NAME}" is the listener of --quorum: choose another name')
    specs = [_make_spec(endpoint, config, advertised) for endpoint in config.endpoints if config.is_broker]
    voters = parse_voters(config.controller_quorum_voters)
    if voters:
        specs.append(_controller_spec(voters, config))
    for spec in specs:
        _check_production(spec, config)
        _check_door(spec)
        _check_advertised(spec)
        _check_certificate(spec, config)
    return tuple(specs)


def local_spec(specs: Iterable[ListenerSpec]) -> ListenerSpec:
    """What this node comes in by when it asks itself: the controller's listener, also where none is bound."""
    for spec in specs:
        if spec.is_controller:
            return spec
    nowhere = Endpoint(CONTROLLER_NAME, "127.0.0.1", 0)
    return ListenerSpec(
        endpoint=nowhere, protocol=SecurityProtocol.SASL_PLAINTEXT, is_internal=True, is_controller=True
    )


def parse_voters(texts: Iterable[str]) -> dict[int, Endpoint]:
    """`1@host:port` each."""
    voters: dict[int, Endpoint] = {}
    for text in texts:
        number, at, address = text.partition("@")
        if not at or not number.isdigit():
            raise ConfigError(f'"{text}" in --quorum is not ID@HOST:PORT')
        if int(number) in voters:
            raise ConfigError(f"node {number} stands twice in --quorum")
        voters[int(number)] = parse_endpoint(f"{CONTROLLER_NAME}={address}")
    return voters


def is_loopback(host: str) -> bool:
    """True if every address of `host` is this machine's own; "" stands for all addresses."""
    if not host:
        return False
    try:
        infos = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except OSError as error:
        raise ConfigError(f'cannot resolve "{host}": {error.strerror}') from error
    return all(ipaddress.ip_address(str(info[4][0]).partition("%")[0]).is_loopback for info in infos)


def _make_spec(endpoint: Endpoint, config: BrokerConfig, advertised: Mapping[str, Endpoint]) -> ListenerSpec:
    return ListenerSpec(
        endpoint=endpoint,
        protocol=config.security_protocol(endpoint.name),
        tenant=config.listener_tenants.get(endpoint.name, ROOT),
        is_internal=config.is_internal(endpoint.name),
        advertised=advertised.get(endpoint.name),
    )


def _controller_spec(voters: Mapping[int, Endpoint], config: BrokerConfig) -> ListenerSpec:
    endpoint = voters.get(config.node_id)
    if endpoint is None:
        raise ConfigError(f"--quorum does not name this node: there is no entry {config.node_id}@HOST:PORT")
    has_tls = config.ssl_certificate_file is not None
    protocol = SecurityProtocol.SASL_SSL if has_tls else SecurityProtocol.SASL_PLAINTEXT
    return ListenerSpec(endpoint=endpoint, protocol=protocol, is_internal=True, is_controller=True)


def _check_production(spec: ListenerSpec, config: BrokerConfig) -> None:
    """Loopback is no excuse there: whatever else runs on the machine could come in."""
    if config.env == "production" and not spec.protocol.has_sasl:
        raise ConfigError(
            f"listener {spec.endpoint} would let anybody in: HIGHWATER_ENV=production has no listener without "
            f"authentication; set listener.security.protocol.map={spec.name}:SASL_SSL (SASL_PLAINTEXT on loopback)"
        )


def _check_door(spec: ListenerSpec) -> None:
    """Refuse what would let strangers in, or send passwords in the clear."""
    if (spec.protocol.has_tls and spec.protocol.has_sasl) or is_loopback(spec.endpoint.host):
        return
    if not spec.protocol.has_sasl:
        raise ConfigError(
            f"listener {spec.endpoint} would let anybody in: without authentication only loopback is allowed; "
            f"set listener.security.protocol.map={spec.name}:SASL_SSL"
        )
    remedy = "ssl.certificate.file and ssl.key.file"
    if not spec.is_controller:
        remedy = f"listener.security.protocol.map={spec.name}:SASL_SSL"
    raise ConfigError(
        f"listener {spec.endpoint} would send passwords in the clear: PLAIN is for loopback or TLS; set {remedy}"
    )


def _check_advertised(spec: ListenerSpec) -> None:
    """Clients are told where to connect: "every address" is no place to go to."""
    if spec.advertised is None and not spec.is_controller and spec.endpoint.host in _EVERY_ADDRESS:
        raise ConfigError(
            f"listener {spec.endpoint} listens on every address: tell clients which to use, "
            f"set advertised.listeners={spec.name}=HOST:{spec.endpoint.port}"
        )


def _check_certificate(spec: ListenerSpec, config: BrokerConfig) -> None:
    if spec.protocol.has_tls and not (config.ssl_certificate_file and config.ssl_key_file):
        raise ConfigError(f'listener "{spec.name}" has TLS: set ssl.certificate.file and ssl.key.file')


def _check_known(given: Iterable[str], names: Iterable[str], config_name: str) -> None:
    for name in given:
        if name not in names:
            raise ConfigError(f'{config_name} names "{name}", but there is no --listen {name}=HOST:PORT')
