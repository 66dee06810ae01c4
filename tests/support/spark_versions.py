"""Marks of tests that an older Spark cannot pass: it lacks what they are about."""

from importlib.util import find_spec

import pytest

from odradek.pipeline.spark_versions import CAN_LIMIT_BATCHES

needs_filters = pytest.mark.skipif(
    find_spec("pyspark.sql.worker.data_source_pushdown_filters") is None,
    reason="pushed filters need Spark 4.1",
)
needs_limits = pytest.mark.skipif(not CAN_LIMIT_BATCHES, reason="limited batches need Spark 4.2")
