"""Nothing in the engine reaches past its seams: else a seed would not repeat a run."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import broker_engine

ROOT = Path(broker_engine.__file__).parent
SEAMS = {
    "clock.py": {"time", "random", "secrets"},
    "net/sockets.py": {"os", "socket"},
    "net/page_cache.py": {"os"},
    "log/disk_files.py": {"os", "threading"},
    "log/syncfs.py": {"os", "ctypes"},
    "log/sync_ring.py": {"os", "ctypes"},
    "server/store.py": {"os", "fcntl"},
    "server/surroundings.py": {"time"},
    "server/loop_watch.py": {"threading", "time"},  # only by surroundings
    "server/pacer.py": {"time"},  # the default of what surroundings give
    "server/listeners.py": {"socket"},  # resolves names before anything is bound
    "security/cluster_secret.py": {"os", "secrets"},
    "client/handshake.py": {"os"},  # os.strerror
    "client/credentials.py": {"secrets"},  # for the control plane
}
"""The files that may touch the machine, and with what."""
FORBIDDEN = frozenset(
    {"time", "random", "socket", "threading", "secrets", "os", "fcntl", "select", "tempfile", "subprocess", "ctypes"}
)
OUTSIDE = ("__main__.py", "serve.py", "simulator/", "tools/")


def _modules() -> list[str]:
    names = (path.relative_to(ROOT).as_posix() for path in ROOT.rglob("*.py"))
    return sorted(name for name in names if not name.startswith(OUTSIDE))


def _imported(tree: ast.AST) -> Iterator[tuple[str, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((alias.name.partition(".")[0], "") for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module is not None:
            yield from ((node.module.partition(".")[0], alias.name) for alias in node.names)


@pytest.mark.parametrize("name", _modules())
def test_only_seams_touch_the_machine(name: str) -> None:
    imported = list(_imported(ast.parse((ROOT / name).read_text())))
    found = {module for module, _ in imported} & FORBIDDEN
    assert found <= SEAMS.get(name, set()), "time, chance, files and sockets come by constructor: see surroundings.py"
    assert ("uuid", "uuid4") not in imported
    assert ("datetime", "datetime") not in imported or "now(" not in (ROOT / name).read_text()
