"""What `up` would run, worked out without running it."""

from __future__ import annotations

from pathlib import Path

import pytest

from control_plane.supervisor import plan
from control_plane.supervisor.plan import UpOptions


def options(*, is_production: bool = False) -> UpOptions:
    return UpOptions(home=Path("/srv/highwater"), http_port=8000, kafka_port=9092, is_production=is_production)


def test_development_has_a_demo_listener_without_authentication_on_loopback() -> None:
    env = plan.environment(options(), {})
    argv = list(plan.broker(options(), env).argv)
    assert "demo=127.0.0.1:9092" in argv
    assert "listener.name.demo.tenant=demo" in argv
    assert "listener.security.protocol.map=demo:PLAINTEXT,clients:SASL_PLAINTEXT,internal:SASL_PLAINTEXT" in argv


def test_production_has_no_listener_without_authentication() -> None:
    env = plan.environment(options(is_production=True), {})
    argv = " ".join(plan.broker(options(is_production=True), env).argv)
    assert "demo" not in argv
    assert ":PLAINTEXT" not in argv
    assert "auto.create.topics.enable=false" in argv
    assert 9092 not in dict(plan.wanted_ports(options(is_production=True))).values()


@pytest.mark.parametrize("name", ["HIGHWATER_PUBLIC_URL", "HIGHWATER_CLUSTER_SECRET_FILE", "HIGHWATER_REDIS_URL"])
def test_what_the_user_has_set_stays(name: str) -> None:
    assert plan.environment(options(), {name: "mine"})[name] == "mine"


def test_the_platform_folder_comes_after_the_root_and_the_users_own_path_is_kept() -> None:
    path = plan.environment(options(), {"PYTHONPATH": "/opt/extra"})["PYTHONPATH"].split(":")
    assert path == [str(plan.ROOT), str(plan.ROOT / "platform"), "/opt/extra"]
