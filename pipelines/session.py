"""One way to get a Spark session: with the Kafka connector's jars, on the master that the environment names."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from pyspark.sql import SparkSession

JARS = Path(__file__).parent / "jars"
# C1 only and the serial collector: a short local job starts in half the time. Long-running engines want neither.
QUICK_START_JAVA_OPTIONS = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"


def spark_session(app_name: str, *, master: str | None = None) -> SparkSession:
    """A session on `master`, else on $HIGHWATER_SPARK_MASTER, else on this machine's cores."""
    jars = sorted(str(path) for path in JARS.glob("*.jar"))
    if not jars:
        raise SystemExit("Spark's Kafka connector is not there: run `make pipelines` first")
    # Without this Spark's workers run whatever `python3` is on the PATH, which lacks PySpark.
    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = (
        SparkSession.builder.appName(app_name)
        .master(master or os.environ.get("HIGHWATER_SPARK_MASTER", "local[*]"))
        .config("spark.jars", ",".join(jars))
        .config("spark.driver.extraJavaOptions", QUICK_START_JAVA_OPTIONS)
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.shuffle.partitions", "2")
    )
    session: SparkSession = builder.getOrCreate()
    session.sparkContext.setLogLevel("WARN")
    return session
