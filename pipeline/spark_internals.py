"""What is read of pyspark's frames, modules and private attributes by name: all of it is here.

pyspark has no public name for these. Each may change with a version of Spark, so each says what it
is needed for, and what happens if it is not found. The tests of every supported version
(`make spark-4.0`, …) run through all of them.

    worker_stream      a task's input, to see whether it has ended; not found: the task fails
    workers_python     the Python that runs the data source on this machine; not found: an error
    active_session     which session Spark asks for a name; not found: an error in `register`
    has_jvm_started    whether Control-C may end the process; not found: an error at Control-C
    can_limit_batches  whether a source may limit a batch (4.2); not found: such options are refused

The differences between versions in public names are in spark_versions.py.
"""

import io
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import SparkSession


def worker_stream() -> io.BufferedReader | None:
    """Return what Spark sends to this worker; None in a process that is not known as a worker.

    It is an argument of the worker's function `main` (pyspark.worker).
    """
    frame = sys._getframe()
    while frame.f_back is not None:
        frame = frame.f_back
        if frame.f_code.co_name == "main" and "infile" in frame.f_locals:
            return cast("io.BufferedReader", frame.f_locals["infile"])
    return None


@contextmanager
def workers_python(context: "SparkContext", python: str) -> Iterator[None]:
    """Let data sources that are registered meanwhile run in this Python.

    Spark would otherwise run them in the `python3` that is first on the PATH. `PYSPARK_PYTHON` does
    the same, but only before the session is made.
    """
    original, context.pythonExec = context.pythonExec, python
    try:
        yield
    finally:
        context.pythonExec = original


@contextmanager
def active_session(spark: "SparkSession") -> Iterator[None]:
    """Make the session the active one of this thread.

    Spark looks for the name of a data source in the active session before it registers it in
    another, and refuses if it is there: DATA_SOURCE_ALREADY_EXISTS.
    """
    sessions = getattr(spark.sparkContext._jvm, "org.apache.spark.sql.classic.SparkSession")
    before = sessions.getActiveSession()
    sessions.setActiveSession(spark._jsparkSession)
    try:
        yield
    finally:
        if before.isDefined():
            sessions.setActiveSession(before.get())
        else:
            sessions.clearActiveSession()


def has_jvm_started() -> bool:
    """Return whether Spark's JVM has started and is connected to this process."""
    from pyspark import SparkContext

    return SparkContext._gateway is not None


def can_limit_batches() -> bool:
    """Return whether a reader of a stream may limit its batches, for which 4.2 has a module."""
    return find_spec("pyspark.sql.streaming.datasource") is not None
