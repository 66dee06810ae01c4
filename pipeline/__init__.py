"""The data pipeline: jobs in processes of one machine, and everything on PySpark.

`odradek[pipeline]` is enough for the jobs on one machine; Spark needs `odradek[spark]` and Java 17.

    from odradek.pipeline import register

    register(spark)
    spark.read.format("odradek").option("path", "/var/lib/odradek").option("subscribe", "orders")

The jobs are also Python calls: `from odradek.pipeline.calls import archive`.

Importing this package imports neither pyspark nor pyarrow: a broker runs without them.
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
    """Register `format("odradek")` with a session, for batch queries and for streams."""
    from odradek.pipeline.source.data_source import OdradekDataSource

    from .spark_internals import active_session, workers_python

    context = getattr(spark, "sparkContext", None)
    if context is None:  # a session of Spark Connect
        spark.dataSource.register(OdradekDataSource)
        return
    on_this_machine = context.master.startswith("local") and "PYSPARK_PYTHON" not in os.environ
    python = sys.executable if on_this_machine else context.pythonExec
    with active_session(spark), workers_python(context, python):
        spark.dataSource.register(OdradekDataSource)
