"""A Spark job: orders are JSON; large ones go to a topic, those that are no orders to another.

KAFKA_BROKERS=localhost:9092 python checked_orders.py
"""

import os
from collections.abc import Mapping

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming import StreamingQuery

from odradek.pipeline import register
from odradek.pipeline.dead_letters import decode_json, with_dead_letters

ORDER = "id BIGINT NOT NULL, customer STRING, amount DECIMAL(12, 2), at TIMESTAMP"


def large_orders(orders: DataFrame) -> DataFrame:
    """The rows to write: columns are topic, key, value, headers, partition."""
    return orders.sparkSession.sql(
        """SELECT 'orders.large' AS topic, decoded.customer AS key, to_json(decoded) AS value
           FROM {orders} WHERE decoded.amount >= 1000""",
        orders=orders,
    )


def start(
    spark: SparkSession, kafka: Mapping[str, str], checkpoint: str, **trigger: str | bool
) -> StreamingQuery:
    """Start the job. It continues at its checkpoint, however the last run has ended."""
    register(spark)
    source = spark.readStream.format("odradek").options(**kafka, subscribe="orders")
    source = source.options(startingOffsets="earliest", includeHeaders="true")
    orders = decode_json(source.load(), ORDER)
    rows = with_dead_letters(orders, large_orders, "orders.bad")
    writer = rows.writeStream.format("odradek").options(**kafka, checkpointLocation=checkpoint)
    return writer.trigger(**trigger).start()


if __name__ == "__main__":
    # Settings of the client begin with kafka., passwords too: os.environ["KAFKA_PASSWORD"].
    broker = {"kafka.bootstrap.servers": os.environ.get("KAFKA_BROKERS", "localhost:9092")}
    session = SparkSession.builder.appName("checked orders").getOrCreate()
    start(
        session, broker, "checkpoints/checked-orders", processingTime="10 seconds"
    ).awaitTermination()
