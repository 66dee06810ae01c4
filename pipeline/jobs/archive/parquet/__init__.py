"""The files of an archive: where they are, and how records are written to them.

Reading order: storage, parquet_format, dated_files, plain_types.
"""
