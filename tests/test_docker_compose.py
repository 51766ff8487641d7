"""docker-compose.yml as far as it can be checked without an engine: it parses, and what it names exists here."""

from __future__ import annotations

import re
import shlex
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import yaml

from broker_engine.config import BrokerConfig
from broker_engine.config.properties import parse_properties

REPOSITORY = Path(__file__).resolve().parents[1]
COMPOSE: dict[str, Any] = yaml.safe_load((REPOSITORY / "docker-compose.yml").read_text())
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
BROKERS = ("broker-1", "broker-2", "broker-3")
OURS = [name for name, service in SERVICES.items() if "build" in service]


def command_of(service: str) -> list[str]:
    command = SERVICES[service]["command"]
    return command if isinstance(command, list) else shlex.split(command)


def test_every_part_of_the_platform_has_a_service() -> None:
    assert {*BROKERS, "web", "worker", "beat", "database", "redis", "migrate", "init"} == set(SERVICES)


@pytest.mark.parametrize("name", sorted(SERVICES))
def test_a_service_depends_only_on_services_and_mounts_only_declared_volumes(name: str) -> None:
    service = SERVICES[name]
    assert set(service.get("depends_on", {})) <= set(SERVICES)
    for needed, condition in service.get("depends_on", {}).items():
        if condition["condition"] == "service_healthy":
            assert "healthcheck" in SERVICES[needed], f"{name} waits for {needed} to be healthy"
    mounted = {mount.split(":")[0] for mount in service.get("volumes", [])}
    assert mounted <= set(COMPOSE["volumes"])


@pytest.mark.parametrize("name", sorted(OURS))
def test_a_command_names_a_module_or_file_of_this_repository(name: str) -> None:
    command = command_of(name)
    if command[:2] == ["python", "-m"]:
        assert find_spec(command[2]) is not None
    elif command[0] == "python":
        assert (REPOSITORY / command[1]).is_file()
    else:
        assert (REPOSITORY / command[0].removeprefix("/app/")).is_file()


def test_the_web_service_serves_an_application_that_imports() -> None:
    module, _, attribute = command_of("web")[3].partition(":")
    assert callable(getattr(import_module(module), attribute))


def config_of(broker: str) -> BrokerConfig:
    """As `serve` would read it."""
    words = command_of(broker)
    options = dict(word.removeprefix("--").split("=", 1) for word in words if word.startswith("--"))
    common = parse_properties((REPOSITORY / options["config"].removeprefix("/app/")).read_text())
    own = dict([options["set"].split("=", 1)]) | {"node.id": options["node-id"], "log.dirs": options["data-dir"]}
    return BrokerConfig.load(common, own, env=SERVICES[broker]["environment"]["HIGHWATER_ENV"])


@pytest.mark.parametrize("broker", BROKERS)
def test_a_broker_accepts_the_settings_that_compose_gives_it(broker: str) -> None:
    config = config_of(broker)
    assert config.get("auto.create.topics.enable") is False
    assert config.get("default.replication.factor") == 3
    assert list(config.get("log.dirs")) == [f"/data/{broker}"]


@pytest.mark.parametrize("broker", BROKERS)
def test_no_listener_of_a_broker_is_without_tls_and_authentication(broker: str) -> None:
    config = config_of(broker)
    names = [endpoint.name for endpoint in config.endpoints]
    assert names == ["clients", "internal"]
    assert {config.security_protocol(name).value for name in names} == {"SASL_SSL"}


def test_brokers_find_each_other_and_the_certificate_names_them_all() -> None:
    voters = config_of("broker-1").controller_quorum_voters
    assert [voter.partition("@")[2].partition(":")[0] for voter in voters] == list(BROKERS)
    script = (REPOSITORY / ".docker/init").read_text()
    assert all(f"DNS:{broker}" in script for broker in BROKERS)


def test_each_broker_is_told_to_clients_by_a_port_of_its_own() -> None:
    for broker in BROKERS:
        [published] = SERVICES[broker]["ports"]
        host_port = published.partition(":")[0]
        advertised = {endpoint.name: endpoint for endpoint in config_of(broker).advertised_endpoints}
        assert str(advertised["clients"].port) == host_port
        assert (advertised["internal"].host, advertised["internal"].port) == (broker, 9094)
        assert f"localhost:{host_port}" in SERVICES["web"]["environment"]["HIGHWATER_KAFKA_PUBLIC"]


def test_no_two_brokers_share_a_volume_for_their_data() -> None:
    volumes = [mount.split(":")[0] for broker in BROKERS for mount in SERVICES[broker]["volumes"]]
    assert [volume for volume in volumes if volume != "secrets"] == ["broker-data", "broker-2-data", "broker-3-data"]


def test_the_image_copies_every_folder_that_runs() -> None:
    dockerfile = (REPOSITORY / "Dockerfile").read_text()
    for folder in ("broker_engine", "platform", "api", "web", ".docker"):
        assert f"COPY {folder}/" in dockerfile
    assert "USER highwater" in dockerfile, "the containers do not run as root"


def test_no_secret_is_written_into_the_compose_file() -> None:
    text = (REPOSITORY / "docker-compose.yml").read_text()
    assert not re.search(r"(?i)(password|secret)(_key)?:\s*['\"]?[0-9a-z]{6,}", text)
