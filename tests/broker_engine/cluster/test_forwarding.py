"""What only the controller can do may be asked of any broker, and is there to be used when it is answered."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from broker_engine.wire.messages.init_producer_id import InitProducerIdRequest
from broker_engine.wire.messages.internal_alter_tenants import AlterTenantsRequest, AlterTenantsTenant
from broker_engine.wire.messages.internal_describe_tenants import DescribeTenantsRequest
from broker_engine.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from tests.broker_engine.cluster.cluster_process import ClusterProcess, wait_for
from tests.broker_engine.handlers.calls import create, describe
from tests.broker_engine.raw_client import RawClient


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ClusterProcess]:
    listeners = {"default": "PLAINTEXT", "demo": "PLAINTEXT", "internal": "SASL_PLAINTEXT"}
    settings = {"listener.name.demo.tenant": "demo"}
    with ClusterProcess(tmp_path_factory.mktemp("cluster"), listeners=listeners, settings=settings) as cluster:
        cluster.wait_for_brokers(1, 2, 3)
        yield cluster


def test_a_topic_is_created_by_way_of_every_node(cluster: ClusterProcess) -> None:
    for node in cluster:
        with RawClient(node.address()) as client:
            name = create(client, f"by-way-of-{node.node_id}")
            assert describe(client, name).error_code == 0  # the same node shows it at once


def test_a_refusal_comes_back_as_it_was(cluster: ClusterProcess) -> None:
    for node in cluster:
        with RawClient(node.address()) as client:
            create(client, f"twice-{node.node_id}")
            with pytest.raises(AssertionError, match="36"):
                create(client, f"twice-{node.node_id}")


def test_what_a_tenant_asks_for_is_its_own_whoever_carries_it_out(cluster: ClusterProcess) -> None:
    for node in cluster:
        with RawClient(node.address("demo")) as tenant, RawClient(node.address()) as root:
            name = create(tenant, f"mine-{node.node_id}")
            assert describe(tenant, name).error_code == 0
            assert describe(root, name).error_code != 0
            assert describe(root, f"demo/{name}").error_code == 0


def test_only_the_control_plane_passes_private_requests_on(cluster: ClusterProcess) -> None:
    request = AlterTenantsRequest(tenants=[AlterTenantsTenant(tenant_id="acme", cluster_id="lkc-acme")])
    for node in cluster:
        with RawClient(node.address("internal")) as client:
            assert client.sign_in("control-plane", cluster.secret_file.read_text().strip()).error_code == 0
            assert client.call(request, 0).results[0].error_code == 0
            asked = DescribeTenantsRequest(tenant_ids=["acme"])
            assert [tenant.tenant_id for tenant in client.call(asked, 0).tenants] == ["acme"]


def test_an_ordinary_admin_client_needs_to_know_nothing(cluster: ClusterProcess) -> None:
    for node in cluster:
        admin = AdminClient({"bootstrap.servers": node.address()})
        made = admin.create_topics([NewTopic(f"admin-{node.node_id}", num_partitions=3)])
        made[f"admin-{node.node_id}"].result(timeout=20)
        gone = admin.delete_topics([f"admin-{node.node_id}"])
        gone[f"admin-{node.node_id}"].result(timeout=20)


def test_topics_come_by_use_on_every_node(cluster: ClusterProcess) -> None:
    for node in cluster:
        name = f"by-use-{node.node_id}"

        def exists(address: str = node.address(), name: str = name) -> bool:
            with RawClient(address) as client:
                request = MetadataRequest(topics=[MetadataRequestTopic(name=name)])
                return bool(client.call(request, 12).topics[0].error_code == 0)

        wait_for(f"topic {name}", exists)


def test_no_producer_id_is_given_out_twice(cluster: ClusterProcess) -> None:
    ids = []
    for node in cluster:
        with RawClient(node.address()) as client:
            answers = [client.call(InitProducerIdRequest(transactional_id=None), 4) for _ in range(5)]
            assert {answer.error_code for answer in answers} == {0}
            ids += [answer.producer_id for answer in answers]
    assert len(set(ids)) == 15


def test_records_are_taken_by_all(cluster: ClusterProcess) -> None:
    errors: list[object] = []
    producer = Producer({"bootstrap.servers": cluster.bootstrap, "acks": "all"})
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
    admin.create_topics([NewTopic("spread", num_partitions=6, replication_factor=3)])["spread"].result(timeout=20)
    for number in range(60):
        producer.produce("spread", str(number), partition=number % 6, on_delivery=lambda error, _: errors.append(error))
    assert producer.flush(20) == 0
    assert errors == [None] * 60
