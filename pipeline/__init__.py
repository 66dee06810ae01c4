"""The data pipeline on PySpark: `pip install 'odradek[spark]'`, and Java 17.

    from odradek.pipeline import register

    register(spark)
    spark.read.format("odradek").option("path", "/var/lib/odradek").option("subscribe", "orders")

Importing this imports neither pyspark nor pyarrow: whoever runs a broker need not have them.
"""

import os
import sys
from typing import TYPE_CHECKING

if __name__ != "odradek.pipeline":
    raise ImportError("import odradek.pipeline, not pipeline")

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["register"]


def register(spark: "SparkSession") -> None:
    """Make `format("odradek")` known to a session, for batches and for streams."""
    from .source.data_source import OdradekDataSource

    context = getattr(spark, "sparkContext", None)  # there is none in a session of Spark Connect
    if context is None or "PYSPARK_PYTHON" in os.environ or not context.master.startswith("local"):
        spark.dataSource.register(OdradekDataSource)
        return
    # Else it would run in the `python3` of PATH, which on this machine may well be another one.
    theirs, context.pythonExec = context.pythonExec, sys.executable
    try:
        spark.dataSource.register(OdradekDataSource)
    finally:
        context.pythonExec = theirs
