"""What the kernel says about one process: CPU, memory, bytes read from disk. Read from /proc, all threads together."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

CLOCK_TICKS_PER_S = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True)
class Usage:
    cpu_s: float
    disk_read_bytes: int

    def __sub__(self, other: Usage) -> Usage:
        return Usage(self.cpu_s - other.cpu_s, self.disk_read_bytes - other.disk_read_bytes)


def usage(pid: int | Sequence[int]) -> Usage:
    """Of one process, or of all brokers of a cluster together."""
    if isinstance(pid, int):
        return _usage(pid)
    parts = [_usage(one) for one in pid]
    return Usage(sum(part.cpu_s for part in parts), sum(part.disk_read_bytes for part in parts))


def _usage(pid: int) -> Usage:
    stat = Path(f"/proc/{pid}/stat").read_text()
    fields = stat.rpartition(")")[2].split()  # the name in brackets may hold spaces
    cpu_ticks = int(fields[11]) + int(fields[12])
    return Usage(cpu_ticks / CLOCK_TICKS_PER_S, _field(f"/proc/{pid}/io", "read_bytes"))


def rss_bytes(pid: int) -> int:
    return _field(f"/proc/{pid}/status", "VmRSS") * 1024


def rss_bytes_max(pid: int) -> int:
    """The highest so far."""
    return _field(f"/proc/{pid}/status", "VmHWM") * 1024


def _field(path: str, name: str) -> int:
    for line in Path(path).read_text().splitlines():
        key, _, value = line.partition(":")
        if key == name:
            return int(value.split()[0])
    raise KeyError(f"{path} has no {name}")
