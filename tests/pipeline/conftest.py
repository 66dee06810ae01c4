"""One Spark session for all tests of the pipeline: it takes seconds to start."""

import warnings
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from odradek.pipeline.session import make_session, why_no_spark
from tests.support.quick_spark import quick_java_options

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# What pyspark itself does: no warning of ours.
SPARKS_OWN = (
    "ignore::DeprecationWarning:pyspark",
    "ignore::FutureWarning:pyspark",
    "ignore::ResourceWarning",  # sockets to the JVM, which the collector closes
    "ignore::pytest.PytestUnraisableExceptionWarning",  # the same, said by pytest
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """A test that asks for the session is slow."""
    for item in items:
        if "spark" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.slow)
            for rule in SPARKS_OWN:
                item.add_marker(pytest.mark.filterwarnings(rule))


# The parameter shows in the ids of the tests that ask for the session: see worker_sharing.
@pytest.fixture(scope="session", params=["on_spark"])
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator["SparkSession"]:
    """A session on two cores in which the data source is registered; skips without Java 17."""
    reason = why_no_spark()
    if reason:
        pytest.skip(reason)
    room = tmp_path_factory.mktemp("spark")
    conf = {
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.warehouse.dir": str(room / "warehouse"),
        "spark.local.dir": str(room),
        "spark.driver.memory": "1g",
        "spark.driver.extraJavaOptions": quick_java_options(),
        "spark.log.level": "ERROR",
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        session = make_session("local[2]", "odradek-tests", conf)
    yield session
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        session.stop()
