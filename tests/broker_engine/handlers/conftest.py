"""One real broker for all handler tests: root, two tenants without authentication, one listener that asks for a key."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from broker_engine.clock import SystemRandomness
from broker_engine.security.scram import ScramMechanism, make_verifier, new_secret
from broker_engine.wire.messages.internal_alter_credentials import (
    AlterCredentialsCredential,
    AlterCredentialsMechanism,
    AlterCredentialsRequest,
)
from broker_engine.wire.messages.internal_alter_tenants import AlterTenantsRequest, AlterTenantsTenant
from tests.broker_engine.broker_process import BrokerProcess
from tests.broker_engine.raw_client import RawClient

TENANTS = ("acme", "globex")


@dataclass(frozen=True, slots=True)
class Key:
    username: str
    secret: str
    tenant: str


@pytest.fixture(scope="package")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    listeners = {"default": "PLAINTEXT", **dict.fromkeys(TENANTS, "PLAINTEXT")}
    listeners |= {"clients": "SASL_PLAINTEXT", "internal": "SASL_PLAINTEXT"}
    settings = {f"listener.name.{name}.tenant": name for name in TENANTS}
    path = tmp_path_factory.mktemp("handlers") / "broker"
    with BrokerProcess(path, listeners=listeners, settings=settings) as process:
        yield process
        assert "Traceback" not in process.log, process.log


@pytest.fixture(scope="package")
def keys(broker: BrokerProcess) -> dict[str, Key]:
    """Both tenants as the control plane would make them, with one API key each."""
    made = {name: Key(f"key-{name}", new_secret(SystemRandomness().token_bytes), name) for name in TENANTS}
    with control_plane(broker) as client:
        tenants = [AlterTenantsTenant(tenant_id=name, cluster_id=f"lkc-{name}-1") for name in TENANTS]
        results = client.call(AlterTenantsRequest(tenants=tenants), 0).results
        assert [result.error_code for result in results] == [0, 0]
        credentials = AlterCredentialsRequest(credentials=[credential_of(key) for key in made.values()])
        results = client.call(credentials, 0).results
        assert [result.error_code for result in results] == [0, 0], results
    return made


@pytest.fixture
def root(broker: BrokerProcess) -> Iterator[RawClient]:
    with RawClient(broker.address()) as client:
        yield client


@pytest.fixture
def acme(broker: BrokerProcess, keys: dict[str, Key]) -> Iterator[RawClient]:
    with RawClient(broker.address("acme")) as client:
        yield client


@pytest.fixture
def globex(broker: BrokerProcess, keys: dict[str, Key]) -> Iterator[RawClient]:
    with RawClient(broker.address("globex")) as client:
        yield client


def control_plane(broker: BrokerProcess) -> RawClient:
    client = RawClient(broker.address("internal"))
    assert client.sign_in("control-plane", broker.cluster_secret).error_code == 0
    return client


def credential_of(key: Key) -> AlterCredentialsCredential:
    verifier = make_verifier(key.secret, b"salt" * 8, mechanism=ScramMechanism.SCRAM_SHA_256)
    return AlterCredentialsCredential(
        username=key.username,
        tenant_id=key.tenant,
        principal=key.username,
        mechanisms=[
            AlterCredentialsMechanism(
                mechanism=verifier.mechanism,
                salt=verifier.salt,
                iterations=verifier.iterations,
                stored_key=verifier.stored_key,
                server_key=verifier.server_key,
            )
        ],
    )
