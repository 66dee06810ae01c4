"""Decodes record batches to Arrow, all records of many batches at once. Independent of Spark."""
