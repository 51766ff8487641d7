"""fdatasync by the kernel's io_uring: what is handed over ends, each with its own result."""

from __future__ import annotations

import errno
import os
import select
from collections.abc import Iterator
from pathlib import Path

import pytest

from broker_engine.log import sync_ring
from broker_engine.log.sync_ring import ENTRIES, SyncRing, open_sync_ring

WAIT_S = 10.0


@pytest.fixture
def ring() -> Iterator[SyncRing]:
    opened = open_sync_ring(worker_count=4)
    if opened is None:
        pytest.skip("this kernel, or the container around it, lends no io_uring")
    yield opened
    opened.close()


def is_readable(ring: SyncRing) -> bool:
    """Soon. By `poll`: among all tests the descriptor may be too high a number for `select`."""
    poll = select.poll()
    poll.register(ring, select.POLLIN)
    return bool(poll.poll(WAIT_S * 1_000))


def wait_for(ring: SyncRing, count: int) -> dict[int, int]:
    """What became of each: 0, or its errno."""
    results: list[tuple[int, int]] = []
    while len(results) < count:
        assert is_readable(ring), f"{len(results)} of {count} have ended"
        results += [(token, 0 if error is None else error.errno or -1) for token, error in ring.ended()]
    assert len(dict(results)) == count, "each ends once"
    return dict(results)


def test_every_file_that_is_handed_over_is_synced(ring: SyncRing, tmp_path: Path) -> None:
    files = [(tmp_path / str(number)).open("wb", buffering=0) for number in range(ENTRIES)]
    for file in files:
        file.write(b"a record")
    assert ring.begin([(file.fileno(), number) for number, file in enumerate(files)]) == ENTRIES
    assert wait_for(ring, ENTRIES) == dict.fromkeys(range(ENTRIES), 0)


def test_the_ring_goes_round_many_times(ring: SyncRing, tmp_path: Path) -> None:
    with (tmp_path / "log").open("wb", buffering=0) as file:
        for turn in range(100):
            tokens = range(turn * 7, turn * 7 + 7)
            assert ring.begin([(file.fileno(), token) for token in tokens]) == len(tokens)
            assert wait_for(ring, len(tokens)) == dict.fromkeys(tokens, 0)


def test_who_cannot_be_synced_is_named_and_the_others_are(ring: SyncRing, tmp_path: Path) -> None:
    reading, writing = os.pipe()
    with (tmp_path / "log").open("wb") as file:
        assert ring.begin([(file.fileno(), 1), (writing, 2), (10**6, 3)]) == 3
        assert wait_for(ring, 3) == {1: 0, 2: errno.EINVAL, 3: errno.EBADF}
    os.close(reading)
    os.close(writing)


def test_nothing_has_ended_before_something_was_begun(ring: SyncRing) -> None:
    assert ring.ended() == []


def test_a_kernel_that_refuses_is_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(self: SyncRing, number: int, *arguments: object) -> int:
        raise PermissionError(errno.EPERM, "as a container's rules say")

    monkeypatch.setattr(SyncRing, "_call", refuse)
    assert open_sync_ring(worker_count=4) is None


def test_other_machines_than_x86_do_without(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sync_ring.platform, "machine", lambda: "aarch64")
    assert open_sync_ring(worker_count=4) is None
