"""The process's one pool of clients: the ASGI lifespan starts it before the first request, closes it after the last."""

from __future__ import annotations

from django.conf import settings

from api.gateway.pool import ClientPool
from broker_engine.client import Client, ClientConfig, PlainCredentials

GATEWAY_USER = "gateway"
REQUEST_TIMEOUT_MS = 10_000
# A name that is not there answers 404 soon; topics made a moment ago are shown by every broker before their 201.
UNKNOWN_TOPIC_WAIT_MS = 300


class GatewayNotStarted(RuntimeError):  # noqa: N818 - reads as the sentence it is
    """No ASGI lifespan has run in this process."""


_pool: ClientPool | None = None


def pool() -> ClientPool:
    if _pool is None:
        raise GatewayNotStarted("the gateway runs under an ASGI server with lifespan support only")
    return _pool


async def start() -> None:
    global _pool  # noqa: PLW0603 - one pool per process is the point
    _pool = ClientPool(make_client)
    await _pool.start()


async def stop() -> None:
    global _pool
    closing, _pool = _pool, None
    if closing is not None:
        await closing.close()


def make_client(tenant: str, principal: str) -> Client:
    """Signed in as the gateway, which alone may act for somebody else."""
    environment = settings.HIGHWATER
    return Client(
        ClientConfig(
            bootstrap=environment.engine_bootstrap,
            client_id=f"highwater-gateway-{principal}",
            sasl=PlainCredentials(GATEWAY_USER, environment.read_cluster_secret(), f"{tenant}:{principal}"),
            tls=environment.engine_tls(),
            request_timeout_ms=REQUEST_TIMEOUT_MS,
            unknown_topic_wait_ms=UNKNOWN_TOPIC_WAIT_MS,
        )
    )
