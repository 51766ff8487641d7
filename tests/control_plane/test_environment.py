"""What the environment may say, and what production insists on."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from django.core.exceptions import ImproperlyConfigured

from control_plane.engine.factory import make_engine
from control_plane.environment import REPOSITORY, load


def test_production_without_a_secret_key_does_not_start(tmp_path: Path) -> None:
    with pytest.raises(ImproperlyConfigured, match="HIGHWATER_SECRET_KEY"):
        load({"HIGHWATER_ENV": "production", "HIGHWATER_HOME": str(tmp_path)})


def test_an_unknown_environment_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ImproperlyConfigured, match="development, production"):
        load({"HIGHWATER_ENV": "prod", "HIGHWATER_HOME": str(tmp_path)})


def test_development_keeps_one_random_key_that_only_its_owner_reads(tmp_path: Path) -> None:
    first, second = load({"HIGHWATER_HOME": str(tmp_path)}), load({"HIGHWATER_HOME": str(tmp_path)})
    assert first.secret_key == second.secret_key
    assert len(first.secret_key) >= 50
    assert stat.S_IMODE((tmp_path / "secret-key").stat().st_mode) == 0o600
    assert [path.name for path in tmp_path.iterdir()] == ["secret-key"]


def test_the_cluster_secret_comes_from_the_environment_or_the_file(tmp_path: Path) -> None:
    environment = load({"HIGHWATER_HOME": str(tmp_path)})
    with pytest.raises(ImproperlyConfigured, match="cluster-secret"):
        environment.read_cluster_secret()
    (tmp_path / "cluster-secret").write_text("from-file\n")
    assert environment.read_cluster_secret() == "from-file"
    named = load({"HIGHWATER_HOME": str(tmp_path), "HIGHWATER_CLUSTER_SECRET": "from-environment"})
    assert named.read_cluster_secret() == "from-environment"


def test_the_public_url_is_an_allowed_host(tmp_path: Path) -> None:
    environment = load({"HIGHWATER_HOME": str(tmp_path), "HIGHWATER_PUBLIC_URL": "https://mq.example.com/"})
    assert environment.public_url == "https://mq.example.com"
    assert "mq.example.com" in environment.allowed_hosts


def test_another_engine_is_refused_in_clear_words() -> None:
    with pytest.raises(ImproperlyConfigured, match="not there yet"):
        make_engine("kafka")
    with pytest.raises(ImproperlyConfigured, match="'pulsar'"):
        make_engine("pulsar")


def settings_in(tmp_path: Path, **environment: str) -> dict[str, str]:
    """Settings as another process sees them: name -> repr."""
    names = "SESSION_COOKIE_SECURE CSRF_COOKIE_SECURE CELERY_BROKER_URL DRIFT_INTERVAL_S CHANNEL_LAYERS DATABASES"
    program = f"from django.conf import settings\nfor n in {names.split()!r}: print(n, repr(getattr(settings, n)))"
    completed = subprocess.run(
        [sys.executable, "-c", program],
        env={
            "PATH": os.environ["PATH"],
            "PYTHONPATH": f"{REPOSITORY}:{REPOSITORY / 'platform'}",
            "DJANGO_SETTINGS_MODULE": "control_plane.settings",
            "HIGHWATER_HOME": str(tmp_path),
            **environment,
        },
        capture_output=True,
        text=True,
        check=True,
    )
    return dict(line.split(" ", 1) for line in completed.stdout.splitlines())


def test_production_sends_cookies_over_tls_only_and_mends_every_30_s(tmp_path: Path) -> None:
    found = settings_in(tmp_path, HIGHWATER_ENV="production", HIGHWATER_SECRET_KEY="k" * 50)
    assert found["SESSION_COOKIE_SECURE"] == found["CSRF_COOKIE_SECURE"] == "True"
    assert found["DRIFT_INTERVAL_S"] == "30.0"


def test_development_needs_no_server(tmp_path: Path) -> None:
    found = settings_in(tmp_path)
    assert found["CELERY_BROKER_URL"] == "'filesystem://localhost//'"
    assert "InMemoryChannelLayer" in found["CHANNEL_LAYERS"]
    assert "sqlite3" in found["DATABASES"]
    assert found["DRIFT_INTERVAL_S"] == "5.0"


def test_redis_and_postgresql_come_by_their_urls(tmp_path: Path) -> None:
    found = settings_in(
        tmp_path, HIGHWATER_REDIS_URL="redis://r:6379/0", HIGHWATER_DATABASE_URL="postgres://u:p@db:5432/hw"
    )
    assert found["CELERY_BROKER_URL"] == "'redis://r:6379/0'"
    assert "RedisChannelLayer" in found["CHANNEL_LAYERS"]
    assert "postgresql" in found["DATABASES"]
