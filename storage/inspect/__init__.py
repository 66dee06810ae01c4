"""Reads log files for inspection: any format, also damaged. For dump-log and verify, not to serve.

`raw_batch` walks the batches of a file. `raw_message` reads messages of the formats before v2.
"""
