"""Kafka's own ProducerPerformance and ConsumerPerformance.

The producer's warm-up is left out of its rate; the consumer's rate is that of fetching, without the time in which its
group formed; the broker's CPU is of all that was carried.
"""

from __future__ import annotations

import re
import subprocess

from benchmarks.brokers.kafka import LIBS
from benchmarks.loads.result import Timed
from benchmarks.process import usage

RATE = re.compile(r"([\d.]+) records/sec \(([\d.]+) MB/sec\)")
TIMEOUT_S = 900
CONSUME_TIMEOUT_MS = 60_000


def produce(
    bootstrap: str, pid: int, topic: str, *, record_bytes: int, total_bytes: int, acks: str = "1", codec: str = "none"
) -> Timed:
    timed_count = max(10, total_bytes // record_bytes)
    warm_up_count = max(1, timed_count // 4)
    before = usage(pid)
    command = ["java", "-Xmx512M", "-cp", f"{LIBS}/*", "org.apache.kafka.tools.ProducerPerformance"]
    command += ["--bootstrap-server", bootstrap, "--topic", topic, "--throughput", "-1"]
    command += ["--record-size", str(record_bytes), "--num-records", str(timed_count + warm_up_count)]
    command += ["--warmup-records", str(warm_up_count)]
    output = _run([*command, "--command-property", f"acks={acks}", f"compression.type={codec}"])
    used = usage(pid) - before
    rates = RATE.findall(output)
    assert rates, f"ProducerPerformance said no rate:\n{output[-2_000:]}"
    records_per_s = float(rates[-1][0])
    all_bytes = (timed_count + warm_up_count) * record_bytes
    return Timed(all_bytes / (records_per_s * record_bytes), all_bytes, timed_count + warm_up_count, used)


def consume(bootstrap: str, pid: int, topic: str, *, record_count: int, record_bytes: int) -> Timed:
    """As a group of one that begins at the earliest record."""
    before = usage(pid)
    command = ["java", "-Xmx512M", "-cp", f"{LIBS}/*", "org.apache.kafka.tools.ConsumerPerformance"]
    command += ["--bootstrap-server", bootstrap, "--topic", topic, "--num-records", str(record_count)]
    output = _run([*command, "--timeout", str(CONSUME_TIMEOUT_MS)])
    used = usage(pid) - before
    figures = _figures(output)
    fetched = int(float(figures["data.consumed.in.nMsg"]))
    assert fetched >= record_count, f"ConsumerPerformance saw only {fetched} of {record_count} records:\n{output}"
    return Timed(float(figures["fetch.time.ms"]) / 1_000, fetched * record_bytes, fetched, used)


def _figures(output: str) -> dict[str, str]:
    """One line of names and one of values, with commas between."""
    lines = output.splitlines()
    heads = [number for number, line in enumerate(lines) if line.startswith("start.time")]
    assert heads, f"ConsumerPerformance said no figures:\n{output[-2_000:]}"
    names, values = (lines[heads[-1] + step].split(", ") for step in (0, 1))
    return dict(zip(names, values, strict=True))


def _run(command: list[str]) -> str:
    done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    assert done.returncode == 0, done.stderr[-2_000:]
    return done.stdout
