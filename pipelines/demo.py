"""`make pipeline-demo`: records in, a Spark job over them, counts per minute out, drawn as bars.

Runs against what `make run` started. Each step says what it does; nothing in it is particular to Highwater's broker:
the job reads and writes through Spark's own Kafka connector.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import subprocess
import sys
import time
from pathlib import Path

from broker_engine.client import (
    Admin,
    Client,
    ClientConfig,
    ConnectionFailed,
    Consumer,
    NewTopic,
    Producer,
    raise_errors,
)

REPOSITORY = Path(__file__).resolve().parents[1]
SPARK_PYTHON = REPOSITORY / ".venv-pipelines" / "bin" / "python"
SOURCE, TARGET = "pipeline-demo.clicks", "pipeline-demo.clicks.per-minute"
MINUTE_MS = 60_000
RECORDS_PER_MINUTE = (40, 120, 260, 180, 75)
BAR_WIDTH = 48


def say(text: str) -> None:
    print(text, flush=True)  # noqa: T201


async def ensure_topics(client: Client) -> None:
    admin = Admin(client)
    existing = set(await admin.list_topics())
    wanted = [NewTopic(name, partitions=3) for name in (SOURCE, TARGET) if name not in existing]
    if wanted:
        raise_errors(await admin.create_topics(wanted))


async def produce_clicks(client: Client, first_minute_ms: int) -> None:
    """A little hill of clicks over the last minutes, so that the picture has a shape."""
    producer = Producer(client)
    try:
        for minute, count in enumerate(RECORDS_PER_MINUTE):
            for index in range(count):
                timestamp_ms = first_minute_ms + minute * MINUTE_MS + index * MINUTE_MS // count
                value = json.dumps({"user": f"user-{index % 17}", "page": f"/items/{index % 5}"}).encode()
                producer.send_nowait(SOURCE, value, key=f"user-{index % 17}".encode(), timestamp_ms=timestamp_ms)
        await producer.flush()
    finally:
        await producer.close()


async def read_counts(client: Client) -> dict[str, int]:
    """The newest count of each minute: the job may write a minute more than once, the last one is right."""
    consumer = Consumer(client)
    counts: dict[str, int] = {}
    try:
        consumer.assign({(TARGET, partition): "earliest" for partition in range(3)})
        while records := await consumer.poll(timeout_ms=2_000):
            for record in records:
                row = json.loads(record.value or b"{}")
                counts[row["minute"]] = row["records"]
    finally:
        await consumer.close()
    return counts


def run_job(bootstrap: str, checkpoint: Path) -> None:
    command = [
        *(str(SPARK_PYTHON), "-m", "pipelines.jobs.counts_per_minute", "--bootstrap", bootstrap),
        *("--source", SOURCE, "--target", TARGET, "--checkpoint", str(checkpoint)),
    ]
    log = checkpoint.with_suffix(".log")
    log.parent.mkdir(parents=True, exist_ok=True)
    started = time.monotonic()
    with log.open("wb") as output, subprocess.Popen(command, cwd=REPOSITORY, stdout=output, stderr=output) as job:  # noqa: S603
        while job.poll() is None:
            time.sleep(0.5)
            print(f"\r   Spark is counting ... {time.monotonic() - started:4.0f} s", end="", flush=True)  # noqa: T201
    say("")
    if job.returncode != 0:
        raise SystemExit(f"the Spark job failed; its log: {log}")


def draw(counts: dict[str, int]) -> None:
    most = max(counts.values(), default=1)
    for minute, count in sorted(counts.items()):
        say(f"   {minute}  {'█' * max(1, count * BAR_WIDTH // most)} {count}")


async def demo(bootstrap: str, home: Path) -> None:
    client = Client(ClientConfig(bootstrap=(bootstrap,), client_id="pipeline-demo"))
    try:
        await client.start()
    except ConnectionFailed as error:
        raise SystemExit(f"nothing answers at {bootstrap}: start `make run` first ({error})") from error
    try:
        say(f"1. topics {SOURCE} and {TARGET}")
        await ensure_topics(client)
        first_minute_ms = (int(time.time() * 1000) // MINUTE_MS - len(RECORDS_PER_MINUTE)) * MINUTE_MS
        say(f"2. {sum(RECORDS_PER_MINUTE)} clicks over the last {len(RECORDS_PER_MINUTE)} minutes")
        await produce_clicks(client, first_minute_ms)
        say("3. Spark reads them through its own Kafka connector and writes counts per minute")
        await asyncio.to_thread(run_job, bootstrap, home / "pipeline-demo" / "checkpoint")
        say(f"4. what {TARGET} holds now:")
        draw(await read_counts(client))
    finally:
        await client.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bootstrap", default="127.0.0.1:9092")
    parser.add_argument("--home", type=Path, default=REPOSITORY / "var")
    arguments = parser.parse_args()
    if not SPARK_PYTHON.exists():
        sys.exit("PySpark is not installed: run `make pipelines` first")
    asyncio.run(demo(arguments.bootstrap, arguments.home))


if __name__ == "__main__":
    main()
