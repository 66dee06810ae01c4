"""Counts records, batches and bytes of topics, and computes the lag of groups.

    extents         offsets and sizes of partitions, and their division into tasks
    topic_scan      runs in a task: adds up the headers of batches in ranges of offsets
    group_log       runs in a task: reads the groups in some partitions of __consumer_offsets
    lag             compares their commits with the ends of partitions
    job             runs all of it and merges the results

Records are not decoded. What depends on their keys, sizes or times is a query over an archive:
examples/notebook has some.
"""
