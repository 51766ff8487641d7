"""How many records, and how many bytes of values, arrived in each minute."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

LATENESS = "10 minutes"


def counts_per_minute(records: DataFrame) -> DataFrame:
    """(topic, timestamp, value) to (topic, minute, records, bytes): one row per topic and minute of event time."""
    return (
        records.withWatermark("timestamp", LATENESS)
        .groupBy("topic", F.window("timestamp", "1 minute").alias("window"))
        .agg(F.count(F.lit(1)).alias("records"), F.coalesce(F.sum(F.length("value")), F.lit(0)).alias("bytes"))
        .select("topic", F.col("window.start").alias("minute"), "records", "bytes")
    )


def as_keyed_json(counts: DataFrame) -> DataFrame:
    """Rows for a topic: the key names topic and minute, so the newest value of a key is that minute's count."""
    minute = F.date_format("minute", "yyyy-MM-dd'T'HH:mm:ss'Z'")
    return counts.select(
        F.concat_ws("@", "topic", minute).cast("binary").alias("key"),
        F.to_json(F.struct("topic", minute.alias("minute"), "records", "bytes")).cast("binary").alias("value"),
    )
