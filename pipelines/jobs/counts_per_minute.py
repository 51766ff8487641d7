"""Job: count a topic's records per minute into another topic.

    python -m pipelines.jobs.counts_per_minute --bootstrap 127.0.0.1:9092 --source clicks --target clicks.per-minute

Runs until what was there at its start is counted, then ends; `--follow` goes on, a batch every few seconds.
Start it again with the same --checkpoint and it goes on where it stopped.
"""

from __future__ import annotations

import argparse
import os

from pyspark.sql import SparkSession

from pipelines.session import spark_session
from pipelines.topics import Cluster, read_stream, write_stream
from pipelines.transforms.counts_per_minute import as_keyed_json, counts_per_minute

FOLLOW_EVERY = "5 seconds"


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Count a topic's records per minute into another topic.")
    parser.add_argument("--bootstrap", required=True, help="HOST:PORT of a Highwater (or Kafka) listener")
    parser.add_argument("--source", required=True, help="topic to read, from its start")
    parser.add_argument("--target", required=True, help="topic to write counts to")
    parser.add_argument("--checkpoint", required=True, help="folder that remembers how far the job got")
    parser.add_argument("--api-key", help="sign in with this API key; its secret comes from $HIGHWATER_API_SECRET")
    parser.add_argument("--follow", action="store_true", help="go on counting instead of ending when caught up")
    return parser.parse_args()


def run(spark: SparkSession, cluster: Cluster, arguments: argparse.Namespace) -> None:
    counts = counts_per_minute(read_stream(spark, cluster, arguments.source))
    writer = write_stream(as_keyed_json(counts), cluster, arguments.target, arguments.checkpoint).outputMode("update")
    trigger = {"processingTime": FOLLOW_EVERY} if arguments.follow else {"availableNow": True}
    query = writer.trigger(**trigger).start()
    query.awaitTermination()
    rows = sum(progress["numInputRows"] for progress in query.recentProgress)
    print(f"counted {rows} records of {arguments.source} into {arguments.target}", flush=True)  # noqa: T201


def main() -> None:
    arguments = parse_arguments()
    cluster = Cluster(arguments.bootstrap, arguments.api_key, os.environ.get("HIGHWATER_API_SECRET"))
    spark = spark_session(f"counts-per-minute {arguments.source}")
    try:
        run(spark, cluster, arguments)
    finally:
        spark.stop()


if __name__ == "__main__":
    main()
