"""A program with a session of Spark Connect, on a server that it starts on loopback.

Arguments: a directory with the topic `orders`, a directory for its own files, Java options. It
prints what it has seen as one line of JSON. A process cannot have a session of each kind.
"""

import json
import os
import sys
from pathlib import Path

from pyspark.sql import SparkSession

from odradek.pipeline import register
from odradek.pipeline.jobs.spark_tasks import SparkTasks
from odradek.pipeline.session import NoSparkError

SETTINGS = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.connect.grpc.binding.address": "127.0.0.1",
    "spark.ui.enabled": "false",
    "spark.sql.shuffle.partitions": "1",
}


def main(data: str, room: Path, java_options: str) -> None:
    os.environ |= {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    builder = SparkSession.builder.remote("local[1]")
    settings = {
        "spark.driver.extraJavaOptions": java_options,
        "spark.local.dir": str(room),
        "spark.sql.warehouse.dir": str(room / "warehouse"),
    }
    for name, value in (SETTINGS | settings).items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    register(spark)
    options = {"path": data, "subscribe": "orders", "startingOffsets": "earliest"}
    batch = spark.read.format("odradek").options(**options).load()
    stream = spark.readStream.format("odradek").options(**options).load()
    query = (
        stream.selectExpr("offset")
        .writeStream.format("parquet")
        .option("checkpointLocation", str(room / "checkpoint"))
        .trigger(availableNow=True)
        .start(str(room / "out"))
    )
    query.awaitTermination(60)
    try:
        SparkTasks(spark)
    except NoSparkError as error:
        job = str(error)
    seen = {
        "batch": [row[0] for row in batch.where("offset > 1").selectExpr("offset").collect()],
        "stream": sorted(row[0] for row in spark.read.parquet(str(room / "out")).collect()),
        "job": job,
    }
    spark.stop()
    sys.stdout.write(json.dumps(seen) + "\n")


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), sys.argv[3])
