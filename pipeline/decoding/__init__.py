"""From record batches to Arrow, all records of many batches at once. Knows nothing of Spark."""
