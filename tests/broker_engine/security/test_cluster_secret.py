from __future__ import annotations

import stat
from pathlib import Path

import pytest

from broker_engine.security.cluster_secret import ENVIRONMENT_NAME, ClusterSecretError, load_or_create


def test_the_first_start_makes_a_private_file_and_later_ones_read_it(tmp_path: Path) -> None:
    path = tmp_path / "data" / "cluster-secret"
    made = load_or_create(path, {})
    assert len(made) == 43
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert load_or_create(path, {}) == made
    assert [entry.name for entry in path.parent.iterdir()] == ["cluster-secret"]


def test_the_environment_wins_and_leaves_no_file(tmp_path: Path) -> None:
    path = tmp_path / "cluster-secret"
    assert load_or_create(path, {ENVIRONMENT_NAME: "e" * 32}) == "e" * 32
    assert not path.exists()


def test_a_file_that_others_can_read_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "cluster-secret"
    path.write_text("s" * 40)
    path.chmod(0o644)
    with pytest.raises(ClusterSecretError, match="chmod 600") as caught:
        load_or_create(path, {})
    assert "sss" not in str(caught.value)


def test_a_short_secret_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ClusterSecretError, match="shorter"):
        load_or_create(tmp_path / "s", {ENVIRONMENT_NAME: "short"})


def test_two_processes_that_start_at_once_agree(tmp_path: Path) -> None:
    from broker_engine.security import cluster_secret

    path = tmp_path / "cluster-secret"
    cluster_secret._create(path)
    first = path.read_text()
    cluster_secret._create(path)
    assert path.read_text() == first
