"""Explains Spark's errors in one line that says what to do."""

import re

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]  # py4j has no types

from odradek.pipeline.jobs.spark_tasks import PYTHON_ERROR

_SQLSTATE = re.compile(r"\s*SQLSTATE: \w{5};?")
_RAISED = re.compile(r"\[USER_RAISED_EXCEPTION\] (.*?)(?: SQLSTATE: \w{5}|$)", re.MULTILINE)
_WRAPPED = re.compile(r"^\[STREAM_FAILED\].*?terminated with exception: ")
_SOURCES = re.compile(r"There are \[(\d+)\] sources in the checkpoint.*now there are \[(\d+)\]")
_STATE = re.compile(r"STATE_STORE_\w+|STATE_SCHEMA|StateSchemaNotCompatible|stateful operator")
_SHARED = re.compile(r"CONCURRENT_STREAM_LOG_UPDATE|Multiple streaming queries are concurrently")
_NO_CONNECTOR = re.compile(r"Failed to find (?:the )?data source: kafka|KAFKA_SOURCE_NOT_FOUND")


def first_line(error: Exception) -> str:
    """Return the first line of Spark's message, without its codes."""
    text = str(error.java_exception) if isinstance(error, Py4JJavaError) else str(error)
    lines = (line.strip() for line in text.splitlines())
    line = next(filter(None, lines), type(error).__name__)
    return _SQLSTATE.sub("", _WRAPPED.sub("", line)).rstrip(" ;")


def explain(error: Exception, checkpoint: str) -> str:
    """Return why a query failed, and what to do if that is known."""
    text = str(error)
    if raised := _RAISED.search(text):
        return raised[1]
    if sources := _SOURCES.search(text):
        return (
            f"the checkpoint {checkpoint} belongs to another job: it has {sources[1]} sources, and "
            f"this job has {sources[2]}. Set another checkpoint"
        )
    if _SHARED.search(text):
        return f"another query is running on the checkpoint {checkpoint}"
    if _STATE.search(first_line(error)):
        return (
            f"{first_line(error)} (the state in {checkpoint} is that of another SQL: set another "
            "checkpoint)"
        )
    if _NO_CONNECTOR.search(text):
        return (
            "format: kafka is Spark's own connector, whose jars were not found: set "
            "spark.jars.packages"
        )
    python_errors: list[str] = PYTHON_ERROR.findall(text)
    return _SQLSTATE.sub("", python_errors[-1]) if python_errors else first_line(error)
