"""Runs the SQL of a job over the views of its sources."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from odradek.pipeline.jobs import JobError

from .failures import first_line


def parse_query(spark: SparkSession, place: str, sql: str) -> DataFrame:
    """Analyse a query. A command is refused, because it would run now. Raises JobError."""
    text = sql.strip().rstrip(";")
    try:
        # To Spark's parser for queries, a command is a syntax error.
        spark._jsparkSession.sessionState().sqlParser().parseQuery(text)
        return spark.sql(text)
    except PySparkException as error:
        raise JobError(f"{place}: {first_line(error)}") from error


def run_statements(spark: SparkSession, statements: Mapping[str, str]) -> DataFrame:
    """Return the result of the last statement; make views of those before. Raises JobError."""
    places = list(statements)
    for place in places[:-1]:
        name = place.rpartition(".")[2]
        parse_query(spark, place, statements[place]).createOrReplaceTempView(name)
    return parse_query(spark, places[-1], statements[places[-1]])


@contextmanager
def temporary_views(spark: SparkSession, frames: Mapping[str, DataFrame]) -> Iterator[None]:
    """Register views for the SQL, until the end. A query that is analysed needs them no more."""
    for name, frame in frames.items():
        frame.createOrReplaceTempView(name)
    try:
        yield
    finally:
        for name in frames:
            spark.catalog.dropTempView(name)
