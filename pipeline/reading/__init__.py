"""Reads ranges of offsets from log directories while brokers may be writing them.

partitions          the partitions in log directories: missing_files
bounds              where a partition begins and ends: high_watermarks
isolation           where its last stable offset is
splits              ranges of offsets, divided by bytes: index_lookup
range_reader        one range, segment after segment: pieces, committed_batches (markers)
"""
