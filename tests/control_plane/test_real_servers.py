"""The same stories on the servers of real use: PostgreSQL for the database, Redis for queue, cache and channels.

Django chooses its database once per process, so the stories run in a second pytest with the URLs in its environment.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from control_plane.environment import REPOSITORY
from tests.control_plane.servers import postgresql, redis_server

OWN_STORIES = ["control_plane/server_stories.py"]
STORIES = ["control_plane/test_topics.py", "control_plane/test_drift.py", "control_plane/test_commands.py"]
REST_STORIES = ["api/test_hostile_bodies.py", "api/test_topics.py", "api/test_api_keys.py", "api/test_members.py"]


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    with postgresql() as database_url, redis_server() as redis_url:
        yield {
            **os.environ,
            "HIGHWATER_HOME": str(tmp_path_factory.mktemp("home")),
            "HIGHWATER_DATABASE_URL": database_url,
            "HIGHWATER_REDIS_URL": redis_url,
        }


@pytest.mark.parametrize("stories", [OWN_STORIES, STORIES, REST_STORIES], ids=["own", "actions", "rest"])
def test_the_stories_hold_on_postgresql_and_redis(environment: dict[str, str], stories: list[str]) -> None:
    files = [str(Path("tests") / story) for story in stories]
    command = [sys.executable, "-m", "pytest", "-q", "-x", "--create-db", "-p", "no:cacheprovider", *files]
    completed = subprocess.run(
        command, cwd=REPOSITORY, env=environment, capture_output=True, text=True, check=False, timeout=240
    )
    assert completed.returncode == 0, completed.stdout[-6000:]


def test_migrations_are_complete_and_run_from_nothing(environment: dict[str, str]) -> None:
    for arguments in (["migrate", "-v", "0"], ["makemigrations", "--check", "--dry-run"]):
        completed = subprocess.run(
            [sys.executable, "manage.py", *arguments, "--skip-checks"],
            cwd=REPOSITORY,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert completed.returncode == 0, completed.stdout + completed.stderr
