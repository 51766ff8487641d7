"""Data pipelines on Spark, through PySpark. Runs in an environment of its own: see README.md."""
