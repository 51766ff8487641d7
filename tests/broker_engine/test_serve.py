"""`python -m broker_engine serve` as a user meets it: the ready line, clean stops, crashes, one clear line when it
cannot.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import ssl
import subprocess
import sys
from pathlib import Path

import pytest

from broker_engine.wire.messages.metadata import MetadataRequest
from tests.broker_engine.broker_process import REPOSITORY, BrokerProcess
from tests.broker_engine.handlers.calls import batch_of, create, describe, fetch, produce, topic_id_of, values_of
from tests.broker_engine.raw_client import RawClient
from tests.ports import own_port


@pytest.fixture
def broker(tmp_path: Path) -> BrokerProcess:
    return BrokerProcess(tmp_path / "broker")


def serve(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """A start that is expected to fail."""
    command = [sys.executable, "-m", "broker_engine", *arguments]
    variables = {**os.environ, **environment}
    return subprocess.run(
        command, cwd=REPOSITORY, env=variables, capture_output=True, text=True, timeout=60, check=False
    )


def only_line(result: subprocess.CompletedProcess[str]) -> str:
    """The one line for the user; the log lines above it carry a time."""
    lines = [line for line in result.stderr.splitlines() if line.startswith("broker_engine: ")]
    assert len(lines) == 1, result.stderr
    assert "Traceback" not in result.stderr
    return lines[0]


def test_the_ready_line_names_node_cluster_and_listeners(broker: BrokerProcess) -> None:
    with broker:
        word, node, cluster, listeners = broker.ready_line.split(" ")
        assert (word, node) == ("ready", "node=1")
        assert len(cluster.removeprefix("cluster=")) == 22
        expected = f"listeners=default={broker.address()},internal={broker.address('internal')}"
        assert listeners == expected


def test_records_and_topics_survive_a_clean_stop(broker: BrokerProcess) -> None:
    with broker:
        with RawClient(broker.address()) as client:
            topic = create(client, partitions=2)
            produce(client, topic, batch_of(b"kept"), partition=1)
            topic_id = topic_id_of(client, topic)
        assert broker.stop() == 0
        assert (broker.data_dir / ".kafka_cleanshutdown").exists()
        broker.start()
        with RawClient(broker.address()) as client:
            assert topic_id_of(client, topic) == topic_id
            assert values_of(fetch(client, topic, partition=1)) == [b"kept"]
            assert describe(client, topic).partitions[0].leader_epoch == 1
            assert fetch(client, topic, partition=1, current_leader_epoch=0).error_code == 74
            assert fetch(client, topic, 1, partition=1, current_leader_epoch=1, last_fetched_epoch=0).error_code == 0
            assert fetch(client, topic, 1, partition=1, last_fetched_epoch=1).error_code == 0
            assert produce(client, topic, batch_of(b"more"), partition=1).base_offset == 1


def test_acked_records_survive_a_kill_and_no_marker_is_left(broker: BrokerProcess) -> None:
    with broker:
        with RawClient(broker.address()) as client:
            topic = create(client)
            for number in range(20):
                assert produce(client, topic, batch_of(b"%d" % number)).error_code == 0
        broker.kill()
        assert not (broker.data_dir / ".kafka_cleanshutdown").exists()
        broker.start()
        with RawClient(broker.address()) as client:
            assert values_of(fetch(client, topic)) == [b"%d" % number for number in range(20)]


def test_a_torn_tail_is_cut_at_start(broker: BrokerProcess) -> None:
    with broker:
        with RawClient(broker.address()) as client:
            topic = create(client)
            produce(client, topic, batch_of(b"whole"))
        broker.kill()
        segment = broker.data_dir / f"{topic}-0" / "00000000000000000000.log"
        with segment.open("ab") as file:
            file.write(segment.read_bytes()[:40])
        broker.start()
        with RawClient(broker.address()) as client:
            assert values_of(fetch(client, topic)) == [b"whole"]
            assert produce(client, topic, batch_of(b"next")).base_offset == 1


def test_a_deleted_topic_leaves_nothing_and_its_name_can_be_used_again(broker: BrokerProcess) -> None:
    from broker_engine.wire.messages.delete_topics import DeleteTopicsRequest

    with broker, RawClient(broker.address()) as client:
        topic = create(client)
        produce(client, topic, batch_of(b"old"))
        first_id = topic_id_of(client, topic)
        client.call(DeleteTopicsRequest(topic_names=[topic]), 5)
        assert not list(broker.data_dir.glob(f"{topic}*"))
        create(client, topic)
        assert topic_id_of(client, topic) != first_id
        assert values_of(fetch(client, topic)) == []


def test_directories_of_nobody_are_set_aside_and_half_deleted_ones_go(broker: BrokerProcess) -> None:
    with broker:
        broker.stop()
        stray, deleted = broker.data_dir / "stranger-0", broker.data_dir / f"gone-0.{'a' * 32}-delete"
        for directory in (stray, deleted):
            directory.mkdir()
            (directory / "00000000000000000000.log").write_bytes(b"something")
        broker.start()
        assert not stray.exists()
        assert not deleted.exists()
        (kept,) = broker.data_dir.glob("stranger-0.*-stray")
        assert (kept / "00000000000000000000.log").read_bytes() == b"something"


def test_the_log_tells_how_the_last_run_ended(broker: BrokerProcess) -> None:
    with broker:
        assert "first start" in broker.log
        assert f"listening on default={broker.address()} PLAINTEXT (root)" in broker.log
        broker.stop()
        broker.start()
        assert "after a clean stop" in broker.log
        assert "not clean" not in broker.log
        broker.kill()
        broker.start()
        assert "the last stop was not clean" in broker.log


def test_interrupt_is_a_clean_stop_too(broker: BrokerProcess) -> None:
    with broker:
        os.kill(broker.pid, signal.SIGINT)
        assert broker.stop() == 0
    assert "stopped cleanly" in broker.log


def test_tenants_have_folders_of_their_own(tmp_path: Path) -> None:
    settings = {"listener.name.demo.tenant": "demo"}
    with BrokerProcess(tmp_path / "b", listeners={"demo": "PLAINTEXT"}, settings=settings) as broker:
        with RawClient(broker.address("demo")) as client:
            create(client, "orders")
            assert client.call(MetadataRequest(topics=[]), 12).cluster_id == "lkc-demo"
        assert (broker.data_dir / "tenants" / "demo" / "orders-0").is_dir()


def test_a_sign_in_that_ran_out_ends_the_connection(tmp_path: Path) -> None:
    broker = BrokerProcess(tmp_path / "b", settings={"connections.max.reauth.ms": "300"})
    with broker, RawClient(broker.address("internal")) as client:
        assert client.sign_in("control-plane", broker.cluster_secret).session_lifetime_ms == 300
        answer_count = 0
        while _is_answered(client):
            answer_count += 1
        assert answer_count > 0


def _is_answered(client: RawClient) -> bool:
    try:
        client.send_request(MetadataRequest(topics=[]), 12)
        return client.receive_frame() is not None
    except ConnectionError:
        return False


def test_the_quorums_own_entry_is_a_listener_for_nodes_only(tmp_path: Path) -> None:
    port = own_port()
    settings = {"controller.quorum.voters": f"1@127.0.0.1:{port}"}
    with BrokerProcess(tmp_path / "b", settings=settings) as broker:
        assert f"controller=127.0.0.1:{port}" in broker.ready_line
        with RawClient(f"127.0.0.1:{port}") as stranger:
            assert stranger.sign_in("control-plane", broker.cluster_secret).error_code == 58
        with RawClient(f"127.0.0.1:{port}") as node:
            assert node.sign_in("broker", broker.cluster_secret).error_code == 0
            node.send_request(MetadataRequest(topics=None), 12)
            assert node.is_closed_by_peer()
        with RawClient(broker.address("internal")) as stranger:
            assert stranger.sign_in("broker", broker.cluster_secret).error_code == 58


def test_beyond_loopback_with_tls_and_keys(tmp_path: Path) -> None:
    certificate_file, key_file = str(tmp_path / "cert.pem"), str(tmp_path / "key.pem")
    command = (
        "openssl req -x509 -newkey rsa:2048 -nodes -days 1 -subj /CN=localhost -addext subjectAltName=DNS:localhost"
    )
    files = ["-keyout", key_file, "-out", certificate_file]
    subprocess.run([*command.split(), *files], check=True, capture_output=True)
    settings = {"ssl.certificate.file": certificate_file, "ssl.key.file": key_file}
    trust = ssl.create_default_context(cafile=certificate_file)
    broker = BrokerProcess(tmp_path / "b", listeners={"internal": "SASL_SSL"}, settings=settings)
    with broker, RawClient(broker.address("internal"), tls=trust) as client:
        assert client.sign_in("control-plane", broker.cluster_secret).error_code == 0
        topic = create(client)
        produce(client, topic, batch_of(b"x" * 900_000))
        assert values_of(fetch(client, topic)) == [b"x" * 900_000]


def test_too_many_connections_are_turned_away(tmp_path: Path) -> None:
    with BrokerProcess(tmp_path / "b", settings={"max.connections.per.ip": "2"}) as broker:
        with RawClient(broker.address()) as first, RawClient(broker.address()) as second:
            for client in (first, second):
                assert client.call(MetadataRequest(topics=[]), 12).topics == []
            with RawClient(broker.address()) as third:
                assert third.is_closed_by_peer()
        while True:  # until the broker has noticed that the two are gone
            with RawClient(broker.address()) as next_one, contextlib.suppress(ConnectionError):
                next_one.send_request(MetadataRequest(topics=[]), 12)
                if next_one.receive_frame() is not None:
                    break


def test_the_meta_file_is_kafkas(broker: BrokerProcess) -> None:
    with broker:
        lines = (broker.data_dir / "meta.properties").read_text().splitlines()
        assert {"version=1", "node.id=1"} <= set(lines)
        assert (broker.data_dir / "cluster-secret").stat().st_mode & 0o777 == 0o600
        state = json.loads((broker.data_dir / "__cluster_metadata-0" / "quorum-state").read_text())
        assert state["leaderEpoch"] == 1


# --- one line when it cannot start


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "no listener"),
        (["--listen", "127.0.0.1:0", "--set", "log.segmnet.bytes=1"], 'did you mean "log.segment.bytes"?'),
        (["--listen", "127.0.0.1:0", "--set", "num.partitions=many"], "num.partitions"),
        (["--listen", "127.0.0.1:0", "--set", "nonsense"], "not NAME=VALUE"),
        (["--listen", "0.0.0.0:0"], "would let anybody in"),
        (["--listen", "nonsense"], "not [NAME=]HOST:PORT"),
        (["--listen", "127.0.0.1:0", "--config", "/does/not/exist"], "cannot read --config"),
        (["--listen", "127.0.0.1:0", "--quorum", "2@127.0.0.1:1"], "does not name this node"),
    ],
)
def test_a_wrong_setting_is_one_line(tmp_path: Path, arguments: list[str], message: str) -> None:
    result = serve("serve", "--data-dir", str(tmp_path / "b"), *arguments)
    assert result.returncode == 1
    assert message in only_line(result)


def test_production_refuses_a_listener_without_authentication(tmp_path: Path) -> None:
    result = serve("serve", "--data-dir", str(tmp_path), "--listen", "127.0.0.1:0", HIGHWATER_ENV="production")
    assert result.returncode == 1
    assert "set listener.security.protocol.map=default:SASL_SSL" in only_line(result)


def test_a_taken_port_is_one_line(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        result = serve("serve", "--data-dir", str(tmp_path / "b"), "--listen", f"127.0.0.1:{taken.getsockname()[1]}")
    assert result.returncode == 1
    assert "in use" in only_line(result)


def test_a_second_broker_on_one_directory_is_one_line(broker: BrokerProcess) -> None:
    with broker:
        result = serve("serve", "--data-dir", str(broker.data_dir), "--listen", "127.0.0.1:0")
    assert result.returncode == 1
    assert "another broker runs" in only_line(result)


def test_python_without_asserts_is_refused(tmp_path: Path) -> None:
    result = serve("serve", "--data-dir", str(tmp_path), "--listen", "127.0.0.1:0", PYTHONOPTIMIZE="1")
    assert result.returncode == 1
    assert "python -O" in only_line(result)


def test_a_wrong_command_line_is_bad_usage(tmp_path: Path) -> None:
    assert serve("serve", "--no-such-option").returncode == 2
    assert serve().returncode == 2


def test_a_config_file_is_read_and_overruled(tmp_path: Path) -> None:
    config = tmp_path / "server.properties"
    config.write_text("num.partitions=7\nauto.create.topics.enable=false\n")
    broker = BrokerProcess(tmp_path / "b", settings={"num.partitions": "3"})
    command = broker.command
    broker.command = lambda: [*command(), "--config", str(config)]  # type: ignore[method-assign]
    with broker, RawClient(broker.address()) as client:
        assert len(describe(client, create(client, partitions=-1)).partitions) == 3
        client.call(MetadataRequest(topics=None), 12)
