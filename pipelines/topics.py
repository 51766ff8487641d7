"""Topics as Spark sees them: Spark's own Kafka connector, with Highwater's address and credentials filled in."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming import DataStreamWriter

POLL_RECORDS_MAX = 20_000  # the client's 500 costs two ListOffsets per 500 records: the connector asks after each poll


@dataclass(frozen=True, slots=True)
class Cluster:
    """Where the broker is and, on a listener that authenticates, the API key to sign in with."""

    bootstrap: str
    api_key: str | None = None
    api_secret: str | None = None

    def options(self) -> dict[str, str]:
        options = {"kafka.bootstrap.servers": self.bootstrap}
        if self.api_key is not None:
            login = "org.apache.kafka.common.security.plain.PlainLoginModule required"
            options |= {
                "kafka.security.protocol": "SASL_PLAINTEXT",
                "kafka.sasl.mechanism": "PLAIN",
                "kafka.sasl.jaas.config": f'{login} username="{self.api_key}" password="{self.api_secret}";',
            }
        return options


def read_stream(spark: SparkSession, cluster: Cluster, topic: str) -> DataFrame:
    """Every record of `topic` from its start: key, value, topic, partition, offset, timestamp."""
    return (
        spark.readStream.format("kafka")
        .options(**cluster.options())
        .option("subscribe", topic)
        .option("startingOffsets", "earliest")
        .option("kafka.max.poll.records", POLL_RECORDS_MAX)
        .load()
    )


def write_stream(rows: DataFrame, cluster: Cluster, topic: str, checkpoint: str) -> DataStreamWriter:
    """Rows with `key` and `value` go to `topic`. At least once: the connector's sink has no transactions."""
    return (
        rows.writeStream.format("kafka")
        .options(**cluster.options())
        .option("topic", topic)
        .option("checkpointLocation", checkpoint)
    )
