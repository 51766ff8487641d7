"""All listeners of one node: bound before anything else is touched, opened for other nodes first and clients last."""

from __future__ import annotations

import logging
from collections.abc import Callable

from broker_engine.config import BrokerConfig, ConfigError, Endpoint
from broker_engine.metadata.parts import EndpointImage
from broker_engine.net.stream import Listener, NetCounters, Stream
from broker_engine.net.tls import server_context
from broker_engine.server.acceptor import Acceptor
from broker_engine.server.budget import ByteBudget
from broker_engine.server.connection import ConnectionTimeouts, RequestHandler
from broker_engine.server.listeners import ListenerSpec, make_specs
from broker_engine.server.surroundings import Surroundings

log = logging.getLogger(__name__)

MakeSession = Callable[[ListenerSpec, Stream], RequestHandler]


class Doors:
    def __init__(self, config: BrokerConfig, surroundings: Surroundings, counters: NetCounters) -> None:
        self.specs = make_specs(config)
        self._config = config
        self._surroundings = surroundings
        self._counters = counters
        self._bound: list[tuple[ListenerSpec, Listener]] = []
        self._acceptor: Acceptor | None = None

    def bind(self) -> None:
        """ConfigError where an address cannot be had."""
        tls = None
        if self._config.ssl_certificate_file and self._config.ssl_key_file:
            tls = server_context(self._config.ssl_certificate_file, self._config.ssl_key_file)
        for spec in self.specs:
            endpoint = spec.endpoint
            try:
                listener = self._surroundings.listen(
                    endpoint.host or "0.0.0.0",  # noqa: S104 - what an empty host means
                    endpoint.port,
                    counters=self._counters,
                    tls=tls if spec.protocol.has_tls else None,
                    backlog=self._config.socket_listen_backlog_size,
                )
            except OSError as error:
                raise ConfigError(f"cannot listen on {endpoint}: {error.strerror}") from None
            self._bound.append((spec, listener))

    def open_for_nodes(self, make_session: MakeSession, budget: ByteBudget) -> None:
        self._acceptor = Acceptor(
            make_session,
            budget,
            self._surroundings.clock,
            timeouts=ConnectionTimeouts(idle_ms=self._config.connections_max_idle_ms),
            connections_max=self._config.max_connections,
            connections_per_ip_max=self._config.max_connections_per_ip,
        )
        self._open(is_controller=True)

    def open_for_clients(self) -> None:
        self._open(is_controller=False)

    def _open(self, *, is_controller: bool) -> None:
        assert self._acceptor is not None
        chosen = [(spec, listener) for spec, listener in self._bound if spec.is_controller is is_controller]
        self._acceptor.start(chosen)
        for spec, listener in chosen:
            log.info("listening on %s", spec.describe(*listener.address))

    @property
    def connection_count(self) -> int:
        return 0 if self._acceptor is None else self._acceptor.connection_count

    def cut_off_unwelcome(self) -> None:
        if self._acceptor is not None:
            self._acceptor.cut_off_unwelcome()

    async def close(self, grace_s: float) -> None:
        """What was begun is answered; whoever is not done in time is cut off."""
        if self._acceptor is not None:
            await self._acceptor.stop(grace_s)
        for _, listener in self._bound:
            listener.close()

    # --- where others find us

    def endpoints(self) -> list[Endpoint]:
        """As bound: a port of 0 has become a number."""
        return [Endpoint(spec.name, *listener.address) for spec, listener in self._bound]

    def client_endpoints(self) -> list[EndpointImage]:
        """As clients are told."""
        return [_advertised(spec, listener) for spec, listener in self._bound if not spec.is_controller]

    def controller_endpoint(self) -> tuple[str, int] | None:
        for spec, listener in self._bound:
            if spec.is_controller:
                return spec.endpoint.host, listener.address[1]
        return None


def _advertised(spec: ListenerSpec, listener: Listener) -> EndpointImage:
    host, port = listener.address
    if spec.advertised is not None:
        host, port = spec.advertised.host, spec.advertised.port
    return EndpointImage(spec.name, host, port, spec.protocol.value)
