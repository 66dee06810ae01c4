"""The SQL of a job over the views of its sources."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from pyspark.errors import PySparkException

from odradek.pipeline.jobs.job_error import JobError

from .failures import first_line

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import DataFrame, SparkSession


def query(spark: "SparkSession", place: str, sql: str) -> "DataFrame":
    """A query, and no command: that would be done now, and once. Raises JobError."""
    text = sql.strip().rstrip(";")
    try:
        # Spark's own parser, asked for a query: a command is a syntax error to it.
        spark._jsparkSession.sessionState().sqlParser().parseQuery(text)
        return spark.sql(text)
    except PySparkException as error:
        raise JobError(f"{place}: {first_line(error)}") from error


def last_of(spark: "SparkSession", statements: "Mapping[str, str]") -> "DataFrame":
    """What the last statement yields; those before become views. Raises JobError."""
    places = list(statements)
    for place in places[:-1]:
        name = place.rpartition(".")[2]
        query(spark, place, statements[place]).createOrReplaceTempView(name)
    return query(spark, places[-1], statements[places[-1]])


@contextmanager
def views(spark: "SparkSession", frames: "Mapping[str, DataFrame]") -> Iterator[None]:
    """They can be named in SQL, until the end: who analysed SQL before does not need them then."""
    for name, frame in frames.items():
        frame.createOrReplaceTempView(name)
    try:
        yield
    finally:
        for name in frames:
            spark.catalog.dropTempView(name)
