"""A revoked key and a deleted tenant lose their open connections, not only the right to make new ones."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from broker_engine.wire.messages.internal_alter_credentials import AlterCredentialsCredential, AlterCredentialsRequest
from broker_engine.wire.messages.internal_alter_tenants import AlterTenantsRequest, AlterTenantsTenant
from broker_engine.wire.messages.metadata import MetadataRequest
from tests.broker_engine.broker_process import BrokerProcess
from tests.broker_engine.handlers.calls import create, fetch_request, new_name
from tests.broker_engine.handlers.conftest import Key, control_plane, credential_of
from tests.broker_engine.raw_client import RawClient


@pytest.fixture
def key(broker: BrokerProcess, keys: dict[str, Key]) -> Iterator[Key]:
    """One more key of a tenant that has others."""
    made = Key(new_name("key"), "s" * 43, "acme")
    alter(broker, credential_of(made))
    yield made
    revoke(broker, made)


@pytest.fixture
def client(broker: BrokerProcess, key: Key) -> Iterator[RawClient]:
    with signed_in(broker, key) as raw_client:
        yield raw_client


def test_a_revoked_key_loses_its_connections_and_no_other_key_does(
    broker: BrokerProcess, key: Key, keys: dict[str, Key], client: RawClient
) -> None:
    with signed_in(broker, keys["acme"]) as neighbour:
        revoke(broker, key)
        assert client.is_closed_by_peer()
        assert is_served(neighbour)


def test_a_long_poll_of_a_revoked_key_ends_without_an_answer(
    broker: BrokerProcess, key: Key, client: RawClient, acme: RawClient
) -> None:
    client.send_request(fetch_request(create(acme), max_wait_ms=60_000), 12)
    revoke(broker, key)
    assert client.receive_frame() is None


def test_a_key_with_a_new_secret_is_another_key(broker: BrokerProcess, key: Key, client: RawClient) -> None:
    alter(broker, credential_of(key))
    assert is_served(client)  # the same verifier again: the control plane mends drift that way
    alter(broker, credential_of(Key(key.username, "t" * 43, key.tenant)))
    assert client.is_closed_by_peer()


def test_the_gateway_loses_the_connection_of_a_revoked_caller(broker: BrokerProcess, key: Key) -> None:
    with gateway(broker, f"acme:{key.username}") as caller, gateway(broker, "acme:user-7") as person:
        revoke(broker, key)
        assert caller.is_closed_by_peer()
        assert is_served(person)


def test_a_deleted_tenant_loses_every_connection(broker: BrokerProcess, keys: dict[str, Key]) -> None:
    tenant = new_name("tenant")
    key = Key(new_name("key"), "s" * 43, tenant)
    with control_plane(broker) as admin:
        admin.call(AlterTenantsRequest(tenants=[AlterTenantsTenant(tenant_id=tenant, cluster_id=f"lkc-{tenant}")]), 0)
        alter(broker, credential_of(key))
        with signed_in(broker, key) as client, gateway(broker, f"{tenant}:user-7") as person:
            admin.call(AlterTenantsRequest(tenants=[AlterTenantsTenant(tenant_id=tenant, deleted=True)]), 0)
            assert client.is_closed_by_peer()
            assert person.is_closed_by_peer()
        assert is_served(admin)


def signed_in(broker: BrokerProcess, key: Key) -> RawClient:
    client = RawClient(broker.address("clients"))
    assert client.sign_in(key.username, key.secret).error_code == 0
    return client


def gateway(broker: BrokerProcess, authorization_id: str) -> RawClient:
    client = RawClient(broker.address("internal"))
    assert client.sign_in("gateway", broker.cluster_secret, authorization_id).error_code == 0
    return client


def revoke(broker: BrokerProcess, key: Key) -> None:
    alter(broker, AlterCredentialsCredential(username=key.username, tenant_id=key.tenant, deleted=True))


def alter(broker: BrokerProcess, credential: AlterCredentialsCredential) -> None:
    with control_plane(broker) as admin:
        (result,) = admin.call(AlterCredentialsRequest(credentials=[credential]), 0).results
        assert result.error_code == 0, result


def is_served(client: RawClient) -> bool:
    return client.call(MetadataRequest(topics=[]), 12).topics == []
