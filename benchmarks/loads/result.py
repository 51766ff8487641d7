"""What a load measured, and how it becomes the metrics of a row."""

from __future__ import annotations

from dataclasses import dataclass

from benchmarks.process import Usage

MEGABYTE = 1_000_000
GIGABYTE = 1_000_000_000


@dataclass(frozen=True, slots=True)
class Timed:
    """`used` is what the broker used in `elapsed_s`, to carry `total_bytes`."""

    elapsed_s: float
    total_bytes: int
    request_count: int
    used: Usage

    def throughput(self) -> dict[str, float]:
        return {
            "MB/s": self.total_bytes / MEGABYTE / self.elapsed_s,
            "CPU s/GB": self.used.cpu_s * GIGABYTE / self.total_bytes,
        }

    def requests(self) -> dict[str, float]:
        return {
            "requests/s": self.request_count / self.elapsed_s,
            "CPU us/request": self.used.cpu_s * 1e6 / self.request_count,
        }


@dataclass(frozen=True, slots=True)
class Settled:
    """Until a group was steady, and what the broker used from the first join until it had been so for a while."""

    seconds: float
    used: Usage


@dataclass(frozen=True, slots=True)
class Beaten:
    """Heartbeats of many members over a while."""

    elapsed_s: float
    latencies_ms: list[float]
    used: Usage

    def metrics(self) -> dict[str, float]:
        ordered = sorted(self.latencies_ms)
        return {
            "CPU % of a core": 100 * self.used.cpu_s / self.elapsed_s,
            "heartbeats/s": len(ordered) / self.elapsed_s,
            "p99 ms": ordered[int(len(ordered) * 0.99)],
        }
