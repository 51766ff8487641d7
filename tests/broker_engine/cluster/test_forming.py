"""Nodes that come together: from nothing, over the data of one, after stops, with a disk that was lost."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from broker_engine.wire.messages.create_topics import CreatableReplicaAssignment, CreatableTopic, CreateTopicsRequest
from tests.broker_engine.broker_process import BrokerProcess
from tests.broker_engine.cluster.cluster_process import ClusterProcess, wait_for
from tests.broker_engine.handlers.calls import batch_of, create, fetch, produce, values_of
from tests.broker_engine.raw_client import RawClient


def cluster_id(node: BrokerProcess) -> str:
    return node.ready_line.partition("cluster=")[2].split()[0]


def leader_of(cluster: ClusterProcess, topic: str) -> BrokerProcess:
    def found() -> BrokerProcess | None:
        for shown in cluster.metadata().topics:
            if shown.name == topic and shown.partitions and shown.partitions[0].leader_id in cluster.nodes:
                node = cluster[shown.partitions[0].leader_id]
                return node if node.is_running else None
        return None

    return wait_for(f"a leader of {topic}", found)


def test_three_blank_nodes_form_one_cluster(tmp_path: Path) -> None:
    with ClusterProcess(tmp_path) as cluster:
        assert len({cluster_id(node) for node in cluster}) == 1
        cluster.wait_for_brokers(1, 2, 3)
        assert cluster.controller_id() in (1, 2, 3)
        with RawClient(cluster[1].address()) as client:
            topic = create(client, "first")
        shown = next(each for each in cluster.metadata().topics if each.name == topic)
        assert sorted(shown.partitions[0].replica_nodes) == [1, 2, 3]


def test_a_cluster_survives_stops_and_kills_of_all_its_nodes(tmp_path: Path) -> None:
    with ClusterProcess(tmp_path) as cluster:
        with RawClient(cluster[1].address()) as client:
            topic = create(client, "kept")
        with RawClient(leader_of(cluster, topic).address()) as client:
            assert wait_for("an ack", lambda: produce(client, topic, batch_of(b"before")).error_code == 0)
        before = cluster_id(cluster[1])
        cluster.stop()
        assert all("stopped cleanly" in node.log for node in cluster)
        cluster.start()
        for node in cluster:
            node.kill()
        cluster.start()
        assert {cluster_id(node) for node in cluster} == {before}
        with RawClient(leader_of(cluster, topic).address()) as client:
            assert wait_for("the record", lambda: values_of(fetch(client, topic))) == [b"before"]


def test_each_node_restarts_while_the_others_go_on(tmp_path: Path) -> None:
    with ClusterProcess(tmp_path) as cluster:
        for node in cluster:
            node.stop()
            others = [other.node_id for other in cluster if other is not node]
            cluster.wait_for_brokers(*others)
            node.start()
            cluster.wait_for_brokers(1, 2, 3)


def test_one_nodes_data_grows_into_a_cluster(tmp_path: Path) -> None:
    cluster = ClusterProcess(tmp_path)
    alone = cluster.make_node(1, quorum=f"1@{cluster.addresses[1]}")
    with alone, RawClient(alone.address()) as client:
        topic = create(client, "old")
        assert produce(client, topic, batch_of(b"from before")).error_code == 0
    with cluster:
        assert {cluster_id(node) for node in cluster} == {cluster_id(alone)}
        cluster.wait_for_brokers(1, 2, 3)
        wait_for("three voters", lambda: "voters 1, 2, 3" in cluster[1].log or None)
        with RawClient(leader_of(cluster, topic).address()) as client:
            assert values_of(fetch(client, topic)) == [b"from before"]
        cluster[1].kill()
        assert cluster.controller_id() in (2, 3)


def test_a_wiped_node_comes_back_into_the_same_cluster(tmp_path: Path) -> None:
    with ClusterProcess(tmp_path) as cluster:
        before = cluster_id(cluster[1])
        cluster[1].kill()
        shutil.rmtree(cluster[1].data_dir)
        cluster[1].start()
        assert cluster_id(cluster[1]) == before
        cluster.wait_for_brokers(1, 2, 3)


def test_a_wiped_node_alone_waits_instead_of_founding_another_cluster(tmp_path: Path) -> None:
    with ClusterProcess(tmp_path) as cluster:
        for node in cluster:
            node.kill()
        shutil.rmtree(cluster[1].data_dir)
        cluster[1].launch()
        wait_for("a line that says so", lambda: "waiting for node 2, 3" in cluster[1].log or None)
        assert not (cluster[1].data_dir / "meta.properties").exists()


def test_a_node_that_the_others_do_not_name_is_a_broker_without_a_vote(tmp_path: Path) -> None:
    with ClusterProcess(tmp_path) as cluster:
        fourth = cluster.make_node(4, quorum=f"{cluster.quorum},4@127.0.0.1:{cluster.spare_port}")
        with fourth:
            cluster.wait_for_brokers(1, 2, 3, 4)
            assert "without a vote" in fourth.log
            with RawClient(cluster[1].address()) as client:
                asked = CreatableReplicaAssignment(partition_index=0, broker_ids=[4, 1])
                topic = CreatableTopic(name="far", num_partitions=-1, replication_factor=-1, assignments=[asked])
                assert client.call(CreateTopicsRequest(topics=[topic]), 7).topics[0].error_code == 0
            with RawClient(fourth.address()) as client:
                assert wait_for("an ack", lambda: produce(client, "far", batch_of(b"there")).error_code == 0)
            shown = next(each for each in cluster.metadata().topics if each.name == "far")
            assert sorted(shown.partitions[0].isr_nodes) == [1, 4]


def test_nodes_talk_by_tls_where_there_is_a_certificate(tmp_path: Path) -> None:
    certificate, key = str(tmp_path / "cert.pem"), str(tmp_path / "key.pem")
    command = "openssl req -x509 -newkey rsa:2048 -nodes -days 1 -subj /CN=node -addext subjectAltName=IP:127.0.0.1"
    subprocess.run([*command.split(), "-keyout", key, "-out", certificate], check=True, capture_output=True)
    settings = {"ssl.certificate.file": certificate, "ssl.key.file": key}
    with ClusterProcess(tmp_path, 2, settings=settings) as cluster:
        cluster.wait_for_brokers(1, 2)
        assert "SASL_SSL (brokers)" in cluster[1].log


def test_roles_may_be_split(tmp_path: Path) -> None:
    broker, controller = {"process.roles": "broker"}, {"process.roles": "controller"}
    settings = {"default.replication.factor": "2"}
    with ClusterProcess(tmp_path, 3, settings=settings, settings_of={1: controller, 2: broker, 3: broker}) as cluster:
        wait_for("two brokers", lambda: len(cluster.describe(cluster[2]).brokers) == 2 or None)
        with RawClient(cluster[3].address()) as client:
            create(client, "split", partitions=2)
