"""What `odradek pipeline` does: plain functions over a SparkSession, and what they are made of.

spark_tasks      runs the parts of a job on Spark, and hands on each result when it is there
topic_choice     which partitions a job is about
archive/         closed segments -> Parquet, each record exactly once
replay/          that Parquet -> a topic
verify/          is every byte of thousands of segments what was written?
stats/           what lies in topics by hour, and how far groups are behind
etl/             topics -> SQL -> a topic, as a stream, from one YAML file
"""
