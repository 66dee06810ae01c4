"""Counts records and bytes of topics by hour of the records' timestamps (UTC), and groups' lag.

    plan            divides the partitions into tasks of about equal bytes
    topic_scan      runs in a task: reads ranges of offsets, adds up by hour (hour_stats)
    sketches        quantiles of sizes, number of distinct keys
    group_log       runs in a task: reads the groups in some partitions of __consumer_offsets
    lag             compares their commits with the ends of partitions
    job             runs all of it and merges the results

Each task reduces hundreds of megabytes to a few rows of sums, with numpy on decoded batches. No
record becomes a row of Spark's. That takes a quarter of the time that similar sums take in SQL over
the data source (1.8 M records of 200 B, three codecs, two cores: 6 s and 28 s).
"""
