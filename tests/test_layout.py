"""The top level is our user's; `platform/` must not shadow the standard library's module of that name."""

from __future__ import annotations

import platform
import re
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[1]
FIXED_TOP_LEVEL = (
    *("platform", "broker_engine", "web", "api", "frontend", "tests"),
    *("manage.py", "docker-compose.yml", "README.md"),
)


def test_platform_folder_does_not_shadow_the_standard_library() -> None:
    assert not (REPOSITORY / "platform" / "__init__.py").exists()
    assert Path(platform.__file__).parent == Path(sysconfig.get_path("stdlib"))


def test_platform_of_a_fresh_interpreter_in_the_repository_is_the_standard_library() -> None:
    """`python manage.py` and `python -m` put the repository first on the path: the place where shadowing would show."""
    script = "import platform; print(platform.system())"
    done = subprocess.run([sys.executable, "-c", script], cwd=REPOSITORY, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == platform.system()


def test_platform_is_a_source_root_with_one_package() -> None:
    assert [path.name for path in (REPOSITORY / "platform").iterdir() if path.name != "__pycache__"] == [
        "control_plane"
    ]


@pytest.mark.parametrize("name", FIXED_TOP_LEVEL)
def test_top_level_has_what_our_user_fixed(name: str) -> None:
    assert (REPOSITORY / name).exists()


def test_requirements_are_pinned_with_hashes_and_name_no_index() -> None:
    for path in (REPOSITORY / "requirements").glob("*.txt"):
        text = path.read_text()
        pins = re.findall(r"^[A-Za-z0-9._-]+==\S+ \\$", text, re.MULTILINE)
        assert pins, path.name
        assert text.count("--hash=sha256:") >= len(pins), path.name
        assert "://" not in "\n".join(line for line in text.splitlines() if not line.lstrip().startswith("#")), (
            path.name
        )


def test_npm_lock_files_name_no_download_address() -> None:
    locks = [path for path in REPOSITORY.glob("**/package-lock.json") if "node_modules" not in path.parts]
    assert locks
    for lock in locks:
        assert '"resolved": "http' not in lock.read_text(), lock


@pytest.mark.parametrize("package", ["broker_engine", "platform/control_plane", "api", "web", "frontend", "pipelines"])
def test_each_package_opens_with_a_readme_of_at_most_a_screen(package: str) -> None:
    lines = (REPOSITORY / package / "README.md").read_text().splitlines()
    assert 0 < len(lines) <= 60, f"{package}/README.md has {len(lines)} lines"
