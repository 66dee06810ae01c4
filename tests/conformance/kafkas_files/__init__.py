"""A directory in which Apache Kafka has written everything that there is, and who reads it.

`history` writes, by a real client; `consumed` reads as a consumer does; `spark_reads` reads the
files through Spark, `direct_reads` by the same code without it.
"""
