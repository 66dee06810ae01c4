"""The Delta table of an archive: its state, its rows, and its commits.

Reading order: state, table_format, data_files, merging, replacing, other_writers,
archive_table, iceberg_copy.
"""
