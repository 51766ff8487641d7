"""One broker for all client tests: a listener per tenant without authentication, one with, one internal."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from broker_engine.client import Admin, Client, ClientConfig, Credential, PlainCredentials, Tenant, raise_errors
from broker_engine.client.credentials import make_verifiers, new_secret
from tests.broker_engine.broker_process import BrokerProcess


@dataclass(frozen=True, slots=True)
class Access:
    """How one client signs in: an address and, on the listener that authenticates, a key."""

    bootstrap: str
    tenant: str
    username: str | None = None
    password: str | None = None

    def librdkafka(self) -> dict[str, str]:
        config = {"bootstrap.servers": self.bootstrap}
        if self.username is not None and self.password is not None:
            config |= {
                "security.protocol": "SASL_PLAINTEXT",
                "sasl.mechanism": "PLAIN",
                "sasl.username": self.username,
                "sasl.password": self.password,
            }
        return config

    def python_client(self) -> dict[str, str]:
        """The names that aiokafka and kafka-python share."""
        config = {"bootstrap_servers": self.bootstrap}
        if self.username is not None and self.password is not None:
            config |= {
                "security_protocol": "SASL_PLAINTEXT",
                "sasl_mechanism": "PLAIN",
                "sasl_plain_username": self.username,
                "sasl_plain_password": self.password,
            }
        return config


TENANTS = ("acme", "globex")


async def provision(broker: BrokerProcess) -> dict[str, tuple[str, str]]:
    """Two tenants, each with one API key, written into the engine as the control plane does it."""
    login = PlainCredentials("control-plane", broker.cluster_secret)
    client = Client(ClientConfig(bootstrap=(broker.address("internal"),), client_id="provision", sasl=login))
    await client.start()
    try:
        admin = Admin(client)
        tenants = [Tenant(tenant_id=name, cluster_id=f"lkc-{name}") for name in TENANTS]
        raise_errors(await admin.alter_tenants(tenants))
        keys = {name: (f"key-{name}", new_secret()) for name in TENANTS}
        changes = [
            Credential(username=key, tenant_id=name, principal=key, verifiers=make_verifiers(secret))
            for name, (key, secret) in keys.items()
        ]
        raise_errors(await admin.alter_credentials(changes))
        return keys
    finally:
        await client.close()


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    data_dir: Path = tmp_path_factory.mktemp("compatibility")
    listeners = {**dict.fromkeys(TENANTS, "PLAINTEXT"), "clients": "SASL_PLAINTEXT", "internal": "SASL_PLAINTEXT"}
    settings = {f"listener.name.{name}.tenant": name for name in TENANTS}
    settings |= {"group.initial.rebalance.delay.ms": "100", "offsets.retention.check.interval.ms": "500"}
    with BrokerProcess(data_dir / "broker", listeners=listeners, settings=settings) as process:
        yield process
        assert process.stop() == 0


@pytest.fixture(scope="session")
def keys(broker: BrokerProcess) -> dict[str, tuple[str, str]]:
    return asyncio.run(provision(broker))


@pytest.fixture(params=["plaintext", "sasl-plain"])
def access(request: pytest.FixtureRequest, broker: BrokerProcess, keys: dict[str, tuple[str, str]]) -> Access:
    return access_for("acme", broker, keys, with_sasl=request.param == "sasl-plain")


def access_for(tenant: str, broker: BrokerProcess, keys: dict[str, tuple[str, str]], *, with_sasl: bool) -> Access:
    if with_sasl:
        return Access(broker.address("clients"), tenant, *keys[tenant])
    return Access(broker.address(tenant), tenant)


@pytest.fixture
def topic() -> str:
    return f"compat-{secrets.token_hex(4)}"
