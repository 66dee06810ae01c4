"""Reads partitions from their directories while a broker may be writing them, without Spark."""
