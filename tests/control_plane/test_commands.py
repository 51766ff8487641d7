"""Management commands: the demo, operators, tenants."""

from __future__ import annotations

import io
import json
import stat
from dataclasses import replace
from pathlib import Path

import pytest
from django.conf import settings as django_settings
from django.core.management import CommandError, call_command
from pytest_django import Settings

from control_plane.accounts.models import User
from control_plane.keys.models import ApiKey
from control_plane.keys.verifiers import matches
from control_plane.tenants.models import Membership, Tenant
from tests.control_plane.memory_engine import MemoryEngine


@pytest.fixture
def home(tmp_path: Path, settings: Settings, transactional_db: None, engine: MemoryEngine) -> Path:
    settings.HIGHWATER = replace(django_settings.HIGHWATER, home=tmp_path)
    return tmp_path


def bootstrap() -> dict[str, str]:
    out = io.StringIO()
    call_command("bootstrap_demo", "--json", stdout=out)
    credentials: dict[str, str] = json.loads(out.getvalue())
    return credentials


def test_the_demo_has_an_operator_a_member_a_project_and_a_key_that_work(home: Path) -> None:
    credentials = bootstrap()
    member = User.objects.get(email=credentials["email"])
    assert member.check_password(credentials["password"])
    assert User.objects.get(email=credentials["operator_email"]).is_operator
    assert Membership.objects.get(user=member).tenant_id == "demo"
    assert [project.slug for project in Tenant.objects.get().projects.all()] == ["default"]
    assert matches(ApiKey.objects.get(pk=credentials["api_key"]).verifiers, credentials["api_secret"])


def test_only_its_owner_may_read_the_credentials_file(home: Path) -> None:
    bootstrap()
    assert stat.S_IMODE((home / "demo-credentials.json").stat().st_mode) == 0o600


def test_a_second_run_finds_everything_and_tells_the_same(home: Path) -> None:
    assert bootstrap() == bootstrap()
    assert ApiKey.objects.count() == 1


def test_after_the_file_was_lost_a_new_one_tells_what_works(home: Path) -> None:
    first = bootstrap()
    (home / "demo-credentials.json").unlink()
    second = bootstrap()
    assert second["api_key"] != first["api_key"]
    assert User.objects.get(email=second["email"]).check_password(second["password"])
    assert ApiKey.objects.get(pk=first["api_key"]).status == "revoked"


def test_the_demo_refuses_to_be_in_production(home: Path, settings: Settings) -> None:
    settings.HIGHWATER = replace(settings.HIGHWATER, name="production")
    with pytest.raises(CommandError, match="production"):
        bootstrap()
    assert not Tenant.objects.exists()


def test_an_operator_is_created_with_a_password_from_the_environment(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HIGHWATER_PASSWORD", "a long enough secret")
    call_command("create_operator", "Op@example.com", stdout=io.StringIO())
    assert User.objects.get(email="op@example.com").is_operator


def test_an_account_has_no_rights_until_an_owner_adds_it(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HIGHWATER_PASSWORD", "a long enough secret")
    call_command("create_account", "vic@example.com", stdout=io.StringIO())
    account = User.objects.get(email="vic@example.com")
    assert not account.is_operator
    assert not Membership.objects.filter(user=account).exists()


@pytest.mark.parametrize(("email", "password"), [("op@example.com", "short"), ("not an address", "long enough secret")])
def test_a_bad_operator_is_refused(home: Path, monkeypatch: pytest.MonkeyPatch, email: str, password: str) -> None:
    monkeypatch.setenv("HIGHWATER_PASSWORD", password)
    with pytest.raises(CommandError):
        call_command("create_operator", email)


def test_a_tenant_comes_with_its_owner(home: Path, engine: MemoryEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HIGHWATER_PASSWORD", "a long enough secret")
    call_command("create_tenant", "acme", "--owner", "ada@acme.example", stdout=io.StringIO())
    assert Membership.objects.get().user.email == "ada@acme.example"
    assert engine.tenants["acme"].cluster_id == Tenant.objects.get().cluster_id


@pytest.mark.parametrize("tenant_id", ["Acme", "-a", "a/b", "a" * 64, "", "ä"])
def test_a_bad_tenant_id_is_refused_and_leaves_nothing(
    home: Path, monkeypatch: pytest.MonkeyPatch, tenant_id: str
) -> None:
    monkeypatch.setenv("HIGHWATER_PASSWORD", "a long enough secret")
    with pytest.raises(CommandError):
        call_command("create_tenant", tenant_id, "--owner", "ada@acme.example")
    assert not User.objects.exists()
