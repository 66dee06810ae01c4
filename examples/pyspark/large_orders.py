"""A Spark job: copies the large orders to a topic of their own."""

from pyspark.sql import SparkSession

from odradek.pipeline import register


def copy_large_orders(spark: SparkSession, bootstrap_servers: str, checkpoint: str) -> None:
    """Copy what has come to `orders` since the last time to `large-orders`, then return."""
    register(spark)
    orders = (
        spark.readStream.format("odradek")
        .option("kafka.bootstrap.servers", bootstrap_servers)
        .option("subscribe", "orders")
        .option("startingOffsets", "earliest")
        .load()
    )
    (
        orders.selectExpr("key", "value")
        .where("cast(cast(value as string) as int) >= 100")
        .writeStream.format("odradek")
        .option("kafka.bootstrap.servers", bootstrap_servers)
        .option("topic", "large-orders")
        .option("checkpointLocation", checkpoint)
        .trigger(availableNow=True)
        .start()
        .awaitTermination()
    )
