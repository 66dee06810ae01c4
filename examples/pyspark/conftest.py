from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    spark = SparkSession.builder.master("local[2]").getOrCreate()
    yield spark
    spark.stop()
