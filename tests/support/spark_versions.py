"""The mark of tests that an older Spark cannot pass: it lacks what they are about."""

import pytest

from odradek.pipeline.spark_versions import CAN_LIMIT_BATCHES

needs_limits = pytest.mark.skipif(not CAN_LIMIT_BATCHES, reason="limited batches need Spark 4.2")
