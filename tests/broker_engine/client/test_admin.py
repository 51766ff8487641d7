"""Admin calls against a real broker, the private ones on its internal listener."""

from __future__ import annotations

import asyncio
import json

import pytest

from broker_engine.client import (
    Admin,
    AuthenticationFailed,
    Client,
    ClientConfig,
    ConfigChange,
    ConfigOperation,
    ConfigResource,
    ConfigSource,
    Credential,
    KafkaError,
    NewTopic,
    PlainCredentials,
    Producer,
    ResourceType,
    Tenant,
    Timestamp,
    TopicPartition,
    TopicView,
    UnsupportedVersion,
    raise_errors,
)
from broker_engine.client.credentials import make_verifiers, new_secret, verify_plain
from broker_engine.errors import ErrorCode
from tests.broker_engine.broker_process import BrokerProcess
from tests.broker_engine.client.reading import MakeTopic, read


def internal_config(broker: BrokerProcess, username: str = "control-plane", **more: str) -> ClientConfig:
    return ClientConfig(
        bootstrap=(broker.address("internal"),),
        sasl=PlainCredentials(username, more.get("password", broker.cluster_secret), more.get("authorization_id")),
    )


def code_of(outcome: object) -> ErrorCode:
    assert isinstance(outcome, KafkaError)
    return outcome.code


async def test_topics_are_created_described_and_deleted(client: Client) -> None:
    admin = Admin(client)
    created = await admin.create_topics([NewTopic("made", 3, 1), NewTopic("bad name"), NewTopic("rich", 1, 99)])

    assert raise_errors({"made": created["made"]})["made"].partitions == 3
    assert code_of(created["bad name"]) == ErrorCode.INVALID_TOPIC_EXCEPTION
    assert code_of(created["rich"]) == ErrorCode.INVALID_REPLICATION_FACTOR
    described = await admin.describe_topics(["made", "absent"])
    assert isinstance(described["made"], TopicView)
    assert sorted(described["made"].led) == [0, 1, 2]
    assert code_of(described["absent"]) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert "made" in await admin.list_topics()
    assert "made" in (await admin.metadata_of(1)).topics
    deleted = await admin.delete_topics(["made", "absent"])
    assert deleted["made"] is None
    assert code_of(deleted["absent"]) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert "made" not in await admin.list_topics()


async def test_a_trial_creates_nothing(client: Client) -> None:
    raise_errors(await Admin(client).create_topics([NewTopic("tried", 1, 1)], validate_only=True))

    assert "tried" not in await Admin(client).list_topics()


async def test_a_topic_grows_and_the_producer_sees_it(client: Client, make_topic: MakeTopic) -> None:
    topic = await make_topic()
    await client.topic(topic)
    assert await Admin(client).create_partitions({topic: 2}) == {topic: None}

    assert (await client.topic(topic)).partition_count == 2
    async with Producer(client) as producer:
        assert (await producer.send(topic, b"x", partition=1)).offset == 0


async def test_configs_are_changed_and_shown(client: Client, make_topic: MakeTopic) -> None:
    topic, admin = await make_topic(retention_ms="1000"), Admin(client)
    resource = ConfigResource.topic(topic)
    assert await admin.incremental_alter_configs({resource: [ConfigChange("retention.ms", "5000")]}) == {resource: None}
    entries = raise_errors(await admin.describe_configs([resource]))[resource]
    assert (entries["retention.ms"].value, entries["retention.ms"].is_default) == ("5000", False)
    assert entries["segment.bytes"].is_default

    await admin.incremental_alter_configs({resource: [ConfigChange("retention.ms", None, ConfigOperation.DELETE)]})
    entries = raise_errors(await admin.describe_configs([resource], names=["retention.ms"]))[resource]
    assert list(entries) == ["retention.ms"]
    assert entries["retention.ms"].value == "604800000"
    refused = await admin.incremental_alter_configs({resource: [ConfigChange("retention.mss", "1")]})
    assert code_of(refused[resource]) == ErrorCode.INVALID_CONFIG


async def test_offsets_are_listed_by_end_and_by_time(client: Client, make_topic: MakeTopic) -> None:
    topic = await make_topic()
    target = TopicPartition(topic, 0)
    async with Producer(client) as producer:
        for second in range(3):
            await producer.send(topic, b"x", timestamp_ms=second * 1_000)
    admin = Admin(client)

    assert (await admin.list_offsets({target: "earliest"}))[target].offset == 0
    assert (await admin.list_offsets({target: "latest"}))[target].offset == 3
    found = (await admin.list_offsets({target: Timestamp(500)}))[target]
    assert (found.offset, found.timestamp_ms) == (1, 1_000)
    assert (await admin.list_offsets({target: Timestamp(9_000)}))[target].offset == -1
    with pytest.raises(ValueError, match="needs no look-up"):
        await admin.list_offsets({target: 5})


async def test_the_cluster_is_described(client: Client, broker: BrokerProcess) -> None:
    described = await Admin(client).describe_cluster()

    assert [str(address) for address in described.brokers.values()] == [broker.address()]
    assert described.cluster_id == client.metadata.cluster_id


async def test_a_wrong_password_is_refused_and_the_user_named(broker: BrokerProcess) -> None:
    with pytest.raises(AuthenticationFailed, match="'control-plane'") as caught:
        async with Client(internal_config(broker, password="wrong")):
            pass
    assert caught.value.code == ErrorCode.SASL_AUTHENTICATION_FAILED
    assert not caught.value.retriable


async def test_only_the_gateway_may_act_for_somebody_else(broker: BrokerProcess) -> None:
    with pytest.raises(AuthenticationFailed, match="on behalf of 'demo:key-1'"):
        async with Client(internal_config(broker, authorization_id="demo:key-1")):
            pass


async def test_tenants_and_keys_walk_to_the_engine_and_the_gateway_acts_for_them(broker: BrokerProcess) -> None:
    secret = new_secret()
    policy = {"name_pattern": None, "max_partitions_per_topic": 2, "max_partitions": 10, "auto_create": False}
    policy_json = json.dumps({**policy, "default_partitions": 1})
    async with Client(internal_config(broker)) as root:
        admin = Admin(root)
        assert await admin.alter_tenants([Tenant("demo", "lkc-demo", policy_json)]) == {"demo": None}
        verifiers = await asyncio.to_thread(make_verifiers, secret)
        assert await admin.alter_credentials([Credential("key-1", "demo", "key-1", verifiers)]) == {"key-1": None}
        held = await admin.describe_tenants()
        assert held.tenants["demo"].cluster_id == "lkc-demo"
        assert json.loads(held.tenants["demo"].policy_json)["max_partitions_per_topic"] == 2
        assert {one.stored_key for one in held.credentials["key-1"].mechanisms} == {one.stored_key for one in verifiers}

        async with Client(internal_config(broker, "gateway", authorization_id="demo:key-1")) as caller:
            refused = await Admin(caller).create_topics([NewTopic("orders", 3, 1)])
            assert code_of(refused["orders"]) == ErrorCode.POLICY_VIOLATION
            raise_errors(await Admin(caller).create_topics([NewTopic("orders", 2, 1)]))
            async with Producer(caller) as producer:
                await producer.send("orders", b"mine")
            assert [record.value for record in await read(caller, "orders", 1, partitions=2)] == [b"mine"]
            assert list(await Admin(caller).list_topics()) == ["orders"]
        assert "demo/orders" in await admin.list_topics()
        assert (await admin.describe_tenants(["demo"])).tenants["demo"].partition_count == 2
        assert await admin.alter_credentials([Credential("key-1", deleted=True)]) == {"key-1": None}
        assert "key-1" not in (await admin.describe_tenants()).credentials


async def test_the_private_calls_are_not_offered_to_clients(client: Client) -> None:
    with pytest.raises(UnsupportedVersion, match="internal listener only"):
        await Admin(client).describe_tenants()


def test_a_secret_is_kept_only_as_verifiers() -> None:
    secret = new_secret()
    sha_256, sha_512 = make_verifiers(secret)

    assert len(secret) == 43, "256 bits in base64"
    assert (sha_256.mechanism, sha_512.mechanism) == (1, 2)
    assert verify_plain(sha_256, secret)
    assert verify_plain(sha_512, secret)
    assert not verify_plain(sha_256, new_secret())
    assert secret not in repr(sha_256)


async def test_what_is_set_for_all_brokers_is_shown_as_such_and_can_be_unset(client: Client) -> None:
    admin, name = Admin(client), "follower.replication.throttled.rate"
    everywhere, one = ConfigResource(ResourceType.BROKER, ""), ConfigResource.broker(1)

    async def shown(resource: ConfigResource) -> dict[str, tuple[str | None, int]]:
        entries = raise_errors(await admin.describe_configs([resource], names=[name]))[resource]
        return {entry.name: (entry.value, entry.source) for entry in entries.values()}

    assert await shown(everywhere) == {}
    raise_errors(await admin.incremental_alter_configs({everywhere: [ConfigChange(name, "5000")]}))
    assert await shown(everywhere) == {name: ("5000", ConfigSource.DYNAMIC_DEFAULT_BROKER)}
    assert await shown(one) == {name: ("5000", ConfigSource.DYNAMIC_DEFAULT_BROKER)}
    raise_errors(await admin.incremental_alter_configs({one: [ConfigChange(name, "7000")]}))
    assert await shown(one) == {name: ("7000", ConfigSource.DYNAMIC_BROKER)}
    for resource in (everywhere, one):
        unset = ConfigChange(name, None, ConfigOperation.DELETE)
        raise_errors(await admin.incremental_alter_configs({resource: [unset]}))
    assert await shown(everywhere) == {}
    assert (await shown(one))[name][1] == ConfigSource.DEFAULT
