"""Every API key is scoped or refused; two tenants with the same names see only their own."""

from __future__ import annotations

from uuid import uuid4

import pytest

from broker_engine.errors import BrokerError, ErrorCode
from broker_engine.handlers import CLIENT_APIS, PRIVATE_APIS, SIGN_IN_APIS
from broker_engine.handlers.api import AnyApi, Scope
from broker_engine.wire.framing import encode_request
from broker_engine.wire.messages.api_versions import ApiVersionsRequest
from broker_engine.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from broker_engine.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from broker_engine.wire.messages.describe_cluster import DescribeClusterRequest
from broker_engine.wire.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from broker_engine.wire.messages.describe_topic_partitions import DescribeTopicPartitionsRequest
from broker_engine.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from broker_engine.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from broker_engine.wire.messages.internal_alter_tenants import AlterTenantsRequest, AlterTenantsTenant
from broker_engine.wire.messages.internal_describe_tenants import DescribeTenantsRequest
from broker_engine.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from broker_engine.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from tests.broker_engine.broker_process import BrokerProcess
from tests.broker_engine.handlers.calls import (
    batch_of,
    create,
    describe,
    fetch,
    new_name,
    produce,
    topic_id_of,
    values_of,
)
from tests.broker_engine.handlers.conftest import Key, control_plane
from tests.broker_engine.raw_client import RawClient

KAFKA_KEYS = range(95)
BY_KEY = {api.key: api for api in CLIENT_APIS}


@pytest.mark.parametrize("key", [*KAFKA_KEYS, *(api.key for api in PRIVATE_APIS)])
def test_every_key_is_scoped_or_refused(broker: BrokerProcess, keys: dict[str, Key], key: int) -> None:
    if key in BY_KEY:
        assert isinstance(BY_KEY[key].scope, Scope)
        assert BY_KEY[key].scope is not Scope.PRIVATE
        return
    with RawClient(broker.address("acme")) as client:
        client.send_frame(key.to_bytes(2, "big") + b"\0\0" + b"\0\0\0\7" + b"\0\3raw" + b"\0" * 40)
        assert client.is_closed_by_peer()


@pytest.mark.parametrize("api", [*CLIENT_APIS, *PRIVATE_APIS], ids=lambda api: api.spec.name)
def test_every_refusal_can_be_said_in_every_version(api: AnyApi) -> None:
    for version in range(api.spec.min_version, api.advertised[1] + 1):
        refusal = api.refuse(api.request(), BrokerError(ErrorCode.UNKNOWN_SERVER_ERROR, "why"))
        assert refusal.encode(version)


def test_api_versions_lists_exactly_the_handlers(root: RawClient) -> None:
    response = root.call(ApiVersionsRequest(client_software_name="a", client_software_version="1"), 4)
    listed = {each.api_key: (each.min_version, each.max_version) for each in response.api_keys}
    assert listed == {api.key: api.advertised for api in CLIENT_APIS}
    assert listed[0] == (0, 13)
    assert listed[1] == (4, 17)


# --- two tenants, one name


def test_the_same_name_is_two_topics(acme: RawClient, globex: RawClient) -> None:
    name = new_name("orders")
    create(acme, name)
    assert describe(globex, name).error_code == 3
    create(globex, name, partitions=2)
    produce(acme, name, batch_of(b"of acme"))
    produce(globex, name, batch_of(b"of globex"))
    assert values_of(fetch(acme, name)) == [b"of acme"]
    assert values_of(fetch(globex, name)) == [b"of globex"]
    assert topic_id_of(acme, name) != topic_id_of(globex, name)
    assert len(describe(acme, name).partitions) == 1


def test_a_listing_holds_only_the_callers_topics(acme: RawClient, globex: RawClient, root: RawClient) -> None:
    mine, theirs = create(acme, new_name("mine")), create(globex, new_name("theirs"))
    listed = {topic.name for topic in acme.call(MetadataRequest(topics=None), 12).topics}
    assert mine in listed
    assert theirs not in listed
    assert not any(name.startswith("__") for name in listed)
    described = {topic.name for topic in acme.call(DescribeTopicPartitionsRequest(), 0).topics}
    assert described == listed
    of_root = {topic.name for topic in root.call(MetadataRequest(topics=None), 12).topics}
    assert {f"acme/{mine}", f"globex/{theirs}", "__telemetry"} <= of_root


def test_a_foreign_topic_id_answers_as_an_absent_one(acme: RawClient, globex: RawClient) -> None:
    foreign = topic_id_of(globex, create(globex))
    for topic_id in (foreign, uuid4()):
        asked = MetadataRequest(topics=[MetadataRequestTopic(topic_id=topic_id, name=None)])
        (topic,) = acme.call(asked, 12).topics
        assert (topic.error_code, topic.name, topic.topic_id) == (100, None, topic_id)
        partition = FetchPartition(partition=0, partition_max_bytes=1000)
        fetched = acme.call(FetchRequest(topics=[FetchTopic(topic_id=topic_id, partitions=[partition])]), 13)
        assert fetched.responses[0].partitions[0].error_code == 100
        data = TopicProduceData(topic_id=topic_id, partition_data=[PartitionProduceData(records=batch_of(b"x"))])
        produced = acme.call(ProduceRequest(acks=-1, timeout_ms=1000, topic_data=[data]), 13)
        assert produced.responses[0].partition_responses[0].error_code == 100
        deleted = acme.call(DeleteTopicsRequest(topics=[DeleteTopicState(topic_id=topic_id)]), 6)
        assert deleted.responses[0].error_code == 100


def test_a_tenant_cannot_write_another_tenants_name(acme: RawClient, globex: RawClient) -> None:
    name = create(globex)
    for spelled in (f"globex/{name}", f"/{name}", "__telemetry", "__cluster_metadata"):
        assert produce(acme, spelled, batch_of(b"x")).error_code == 3
        assert describe(acme, spelled).error_code in (3, 17)


def test_root_sees_a_tenants_topic_under_its_tenant(acme: RawClient, root: RawClient) -> None:
    name = create(acme)
    produce(acme, name, batch_of(b"hello"))
    assert values_of(fetch(root, f"acme/{name}")) == [b"hello"]


def test_each_tenant_has_a_cluster_id_of_its_own(acme: RawClient, globex: RawClient, root: RawClient) -> None:
    ids = [client.call(DescribeClusterRequest(), 0).cluster_id for client in (acme, globex, root)]
    assert ids[:2] == ["lkc-acme-1", "lkc-globex-1"]
    assert len(ids[2]) == 22
    assert acme.call(MetadataRequest(topics=[]), 12).cluster_id == "lkc-acme-1"


def test_brokers_are_not_a_tenants_to_configure(acme: RawClient) -> None:
    asked = DescribeConfigsRequest(resources=[DescribeConfigsResource(resource_type=4, resource_name="1")])
    assert acme.call(asked, 4).results[0].error_code == 31
    change = AlterConfigsResource(
        resource_type=4, resource_name="1", configs=[AlterableConfig(name="message.max.bytes", value="1")]
    )
    assert acme.call(IncrementalAlterConfigsRequest(resources=[change]), 1).responses[0].error_code == 31


# --- the private APIs


def test_the_control_plane_reads_back_what_it_wrote(broker: BrokerProcess, keys: dict[str, Key]) -> None:
    with control_plane(broker) as client:
        response = client.call(DescribeTenantsRequest(tenant_ids=["acme", "nobody"]), 0)
    (tenant,) = response.tenants
    (credential,) = response.credentials
    assert (tenant.tenant_id, tenant.cluster_id) == ("acme", "lkc-acme-1")
    assert (credential.username, credential.tenant_id) == ("key-acme", "acme")
    assert credential.mechanisms[0].stored_key


def test_a_tenants_policy_binds_its_topics(broker: BrokerProcess) -> None:
    policy = '{"name_pattern": "team-.*", "max_partitions_per_topic": 2}'
    tenant = AlterTenantsTenant(tenant_id="strict", cluster_id="lkc-strict", policy_json=policy)
    with control_plane(broker) as client:
        assert client.call(AlterTenantsRequest(tenants=[tenant]), 0).results[0].error_code == 0
        topics = [
            CreatableTopic(name="strict/team-a", num_partitions=2, replication_factor=1),
            CreatableTopic(name="strict/other", num_partitions=1, replication_factor=1),
            CreatableTopic(name="strict/team-b", num_partitions=3, replication_factor=1),
        ]
        results = client.call(CreateTopicsRequest(topics=topics), 7).topics
    assert [result.error_code for result in results] == [0, 44, 44]
    assert "name_pattern" in results[1].error_message


def test_a_policy_without_first_use_leaves_a_topic_unknown(broker: BrokerProcess, keys: dict[str, Key]) -> None:
    tenant = AlterTenantsTenant(tenant_id="manual", cluster_id="lkc-manual", policy_json='{"auto_create": false}')
    with control_plane(broker) as client:
        client.call(AlterTenantsRequest(tenants=[tenant]), 0)
        for name, code in (("manual/never", 3), ("acme/at-once", 0)):
            asked = MetadataRequest(topics=[MetadataRequestTopic(name=name)])
            codes = [client.call(asked, 12).topics[0].error_code for _ in range(300)]
            assert codes[-1] == code


def test_the_gateway_acts_only_on_behalf_of_a_caller(
    broker: BrokerProcess, keys: dict[str, Key], acme: RawClient
) -> None:
    name = create(acme)
    with RawClient(broker.address("internal")) as client:
        assert client.sign_in("gateway", broker.cluster_secret).error_code == 0
        assert client.call(ApiVersionsRequest(), 0).error_code == 0
        topics = [MetadataRequestTopic(name=name)]
        assert client.call(MetadataRequest(topics=topics), 12).topics[0].error_code == 31
        assert client.call(DescribeTenantsRequest(), 0).error_code == 31
    with RawClient(broker.address("internal")) as client:
        assert client.sign_in("gateway", broker.cluster_secret, "acme:user-1").error_code == 0
        assert describe(client, name).error_code == 0
        assert client.call(DescribeTenantsRequest(), 0).error_code == 31


def test_nobody_else_may_act_on_behalf(broker: BrokerProcess, keys: dict[str, Key]) -> None:
    for user, secret in (("control-plane", broker.cluster_secret), (keys["acme"].username, keys["acme"].secret)):
        with RawClient(broker.address("internal")) as client:
            assert client.sign_in(user, secret, "globex:user-1").error_code == 58
            assert client.is_closed_by_peer()


def test_the_unsigned_request_still_fits_the_frame_before_sign_in(broker: BrokerProcess) -> None:
    whole = b"".join(bytes(part) for part in encode_request(1, "c" * 20_000, SIGN_IN_APIS[0].request(), 0))  # type: ignore[arg-type]
    with RawClient(broker.address("clients")) as client:
        client.send_frame(whole)
        assert client.is_closed_by_peer()
