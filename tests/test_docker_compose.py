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

REPOSITORY = Path(__file__).resolve().parents[1]
COMPOSE: dict[str, Any] = yaml.safe_load((REPOSITORY / "docker-compose.yml").read_text())
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
OURS = [name for name, service in SERVICES.items() if "build" in service]


def command_of(service: str) -> list[str]:
    command = SERVICES[service]["command"]
    return command if isinstance(command, list) else shlex.split(command)


def test_every_part_of_the_platform_has_a_service() -> None:
    assert {"broker", "web", "worker", "beat", "database", "redis", "migrate", "init"} == set(SERVICES)


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


def test_the_broker_accepts_the_settings_that_compose_gives_it() -> None:
    pairs = (word.removeprefix("--set=") for word in command_of("broker") if word.startswith("--set="))
    settings = dict(pair.split("=", 1) for pair in pairs)
    config = BrokerConfig.load({}, settings, env=SERVICES["broker"]["environment"]["HIGHWATER_ENV"])
    assert config.get("auto.create.topics.enable") is False


def test_no_listener_of_the_broker_is_without_tls_and_authentication() -> None:
    words = command_of("broker")
    protocols = next(word for word in words if "listener.security.protocol.map" in word).rpartition("=")[2]
    listeners = {word.split("=")[1] for word in words if word.startswith("--listen=")}
    assert dict(pair.split(":") for pair in protocols.split(",")) == dict.fromkeys(listeners, "SASL_SSL")


def test_the_image_copies_every_folder_that_runs() -> None:
    dockerfile = (REPOSITORY / "Dockerfile").read_text()
    for folder in ("broker_engine", "platform", "api", "web", ".docker"):
        assert f"COPY {folder}/" in dockerfile
    assert "USER highwater" in dockerfile, "the containers do not run as root"


def test_no_secret_is_written_into_the_compose_file() -> None:
    text = (REPOSITORY / "docker-compose.yml").read_text()
    assert not re.search(r"(?i)(password|secret)(_key)?:\s*['\"]?[0-9a-z]{6,}", text)
