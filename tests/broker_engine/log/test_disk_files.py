"""Small files on a real disk, written by several threads at once: the loop and a flush may meet at one file."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from broker_engine.log.disk_files import DiskFiles


def test_two_threads_may_write_one_small_file_at_once(tmp_path: Path) -> None:
    files = DiskFiles(tmp_path)
    contents = [bytes([number]) * 5_000 for number in range(4)]

    def write(content: bytes) -> None:
        for turn in range(50):
            files.write_atomic("leader-epoch-checkpoint", content, is_durable=turn % 2 == 0)

    with ThreadPoolExecutor(len(contents)) as threads:
        for done in [threads.submit(write, content) for content in contents]:
            done.result()
    assert files.read_small("leader-epoch-checkpoint") in contents
    assert files.list_dir("") == ["leader-epoch-checkpoint"]
