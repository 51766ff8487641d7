"""What `up` would run, worked out without running it."""

from __future__ import annotations

from pathlib import Path

import pytest

from control_plane.supervisor import plan
from control_plane.supervisor.plan import UpOptions


def options(*, is_production: bool = False, broker_count: int = 3) -> UpOptions:
    return UpOptions(
        home=Path("/srv/highwater"),
        http_port=8000,
        kafka_port=9092,
        is_production=is_production,
        broker_count=broker_count,
    )


def argv_of(options: UpOptions, number: int = 1) -> list[str]:
    return list(plan.broker(options, plan.environment(options, {}), number).argv)


def test_development_has_a_demo_listener_without_authentication_on_loopback() -> None:
    argv = argv_of(options())
    assert "demo=127.0.0.1:9092" in argv
    assert "listener.name.demo.tenant=demo" in argv
    assert "listener.security.protocol.map=demo:PLAINTEXT,clients:SASL_PLAINTEXT,internal:SASL_PLAINTEXT" in argv


def test_production_has_no_listener_without_authentication() -> None:
    argv = " ".join(argv_of(options(is_production=True)))
    assert "demo" not in argv
    assert ":PLAINTEXT" not in argv
    assert "auto.create.topics.enable=false" in argv
    assert 9092 not in dict(plan.wanted_ports(options(is_production=True))).values()


def test_each_broker_has_a_directory_and_ports_of_its_own_and_knows_all_others() -> None:
    quorum = "1@127.0.0.1:9122,2@127.0.0.1:9123,3@127.0.0.1:9124"
    for number, demo_port in ((1, 9092), (2, 9093), (3, 9094)):
        argv = argv_of(options(), number)
        assert argv[argv.index("--node-id") + 1] == str(number)
        assert argv[argv.index("--data-dir") + 1] == f"/srv/highwater/broker-{number}"
        assert argv[argv.index("--quorum") + 1] == quorum
        assert f"demo=127.0.0.1:{demo_port}" in argv
    ports = [port for _, port in plan.wanted_ports(options())]
    assert len(ports) == len(set(ports)) == 1 + 4 * 3


def test_more_brokers_move_nobodys_ports() -> None:
    few, many = options(broker_count=1), options(broker_count=9)
    assert set(plan.wanted_ports(few)) <= set(plan.wanted_ports(many))
    assert max(port for _, port in plan.wanted_ports(many)) < many.kafka_port + plan.PORT_SPAN


def test_everybody_is_told_of_all_brokers() -> None:
    env = plan.environment(options(), {})
    assert env["HIGHWATER_ENGINE_BOOTSTRAP"] == "127.0.0.1:9112,127.0.0.1:9113,127.0.0.1:9114"
    assert env["HIGHWATER_KAFKA_PUBLIC"] == "127.0.0.1:9102,127.0.0.1:9103,127.0.0.1:9104"


@pytest.mark.parametrize(("broker_count", "env"), [(1, "development"), (3, "production")])
def test_production_insists_on_three_copies_only_where_there_are_three_brokers(broker_count: int, env: str) -> None:
    chosen = options(is_production=True, broker_count=broker_count)
    environment = plan.environment(chosen, {"HIGHWATER_ENV": "production"})
    assert plan.broker(chosen, environment, 1).environment["HIGHWATER_ENV"] == env


@pytest.mark.parametrize("name", ["HIGHWATER_PUBLIC_URL", "HIGHWATER_CLUSTER_SECRET_FILE", "HIGHWATER_REDIS_URL"])
def test_what_the_user_has_set_stays(name: str) -> None:
    assert plan.environment(options(), {name: "mine"})[name] == "mine"


def test_the_platform_folder_comes_after_the_root_and_the_users_own_path_is_kept() -> None:
    path = plan.environment(options(), {"PYTHONPATH": "/opt/extra"})["PYTHONPATH"].split(":")
    assert path == [str(plan.ROOT), str(plan.ROOT / "platform"), "/opt/extra"]
