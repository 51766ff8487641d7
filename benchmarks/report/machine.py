"""What the figures were measured on."""

from __future__ import annotations

import os
import platform
import subprocess
from pathlib import Path

import confluent_kafka

from benchmarks.brokers import kafka


def describe(data_dir: Path) -> dict[str, str]:
    memory_kb = next(line.split()[1] for line in Path("/proc/meminfo").read_text().splitlines() if "MemTotal" in line)
    return {
        "cpu": f"{os.cpu_count()} x {_cpu_model()}",
        "memory": f"{int(memory_kb) / (1 << 20):.0f} GiB",
        "file system": _first_line("findmnt", "-n", "-o", "FSTYPE,OPTIONS", "--target", str(data_dir)),
        "kernel": platform.release(),
        "Python": platform.python_version(),
        "Java": _first_line("java", "--version"),
        "Kafka": kafka.version(),
        "librdkafka": confluent_kafka.libversion()[0],
        "Highwater": _first_line("git", "-C", str(Path(__file__).parent), "describe", "--always", "--dirty"),
    }


def _cpu_model() -> str:
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), platform.machine())


def _first_line(*command: str) -> str:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
    except OSError:
        return "unknown"
    return (done.stdout.splitlines() or ["unknown"])[0].strip()
