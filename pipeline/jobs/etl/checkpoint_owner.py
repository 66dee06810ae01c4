"""Stores in a checkpoint which job it belongs to, in a small file on any file system of Spark's.

    odradek-etl.json    {"job": "large-orders", "reads": ["orders"]}

Spark stores offsets by the position of a source in its plan, without the source's name. A job that
uses another's checkpoint would skip what the other has read. SQL that reads its sources in another
order would use the offsets of one for the other. Both are refused here. Spark checks other changes
of a job.
"""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from py4j.protocol import Py4JError  # type: ignore[import-untyped]  # py4j has no types
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from odradek.pipeline.jobs import JobError

from .spark_reports import first_line

NAME = "odradek-etl.json"
_ADVICE = "set another checkpoint"


def check_checkpoint(spark: SparkSession, checkpoint: str, job: str, reads: Sequence[str]) -> bool:
    """Return whether this job has already used the checkpoint. Raises JobError if another has."""
    with _errors_named(checkpoint):
        directory = _Directory(spark, checkpoint)
        if not directory.has("offsets"):
            return False
        owner = directory.read(NAME)
    if owner is None:
        raise JobError(
            f"the checkpoint {checkpoint} belongs to another query, not to this job: {_ADVICE}"
        )
    _check_owner(owner, checkpoint, job, list(reads))
    return True


def claim_checkpoint(spark: SparkSession, checkpoint: str, job: str, reads: Sequence[str]) -> bool:
    """Check the checkpoint, and store the job in it if it is new. Raises JobError."""
    is_resumed = check_checkpoint(spark, checkpoint, job, reads)
    if not is_resumed:
        with _errors_named(checkpoint):
            text = json.dumps({"job": job, "reads": list(reads)})
            _Directory(spark, checkpoint).write(NAME, text)
    return is_resumed


@contextmanager
def _errors_named(checkpoint: str) -> Iterator[None]:
    """Raise Spark's errors as JobError, with the checkpoint's name."""
    try:
        yield
    except (Py4JError, PySparkException) as error:
        raise JobError(f"the checkpoint {checkpoint}: {first_line(error)}") from error


def _check_owner(text: str, checkpoint: str, job: str, reads: list[str]) -> None:
    try:
        owner = json.loads(text)
        owning_job, reads_before = owner["job"], owner["reads"]
    except (ValueError, KeyError, TypeError):
        raise JobError(f"the checkpoint {checkpoint}: {NAME} in it is damaged") from None
    if owning_job != job:
        raise JobError(
            f"the checkpoint {checkpoint} belongs to the job '{owning_job}', not to '{job}': "
            f"{_ADVICE}"
        )
    if reads_before != reads:
        raise JobError(
            f"the checkpoint {checkpoint} belongs to another SQL: it read "
            f"{', '.join(reads_before)}, and now it reads {', '.join(reads)}: {_ADVICE}"
        )


class _Directory:
    """A directory on one of Hadoop's file systems."""

    def __init__(self, spark: SparkSession, path: str) -> None:
        assert spark._jvm is not None, "the session has ended"
        self._jvm: Any = spark._jvm
        self._root = self._jvm.org.apache.hadoop.fs.Path(path)
        self._files = self._root.getFileSystem(spark._jsc.hadoopConfiguration())

    def has(self, name: str) -> bool:
        return bool(self._files.exists(self._path(name)))

    def read(self, name: str) -> str | None:
        if not self.has(name):
            return None
        stream = self._files.open(self._path(name))
        try:
            return str(self._jvm.org.apache.commons.io.IOUtils.toString(stream, "UTF-8"))
        finally:
            stream.close()

    def write(self, name: str, text: str) -> None:
        stream = self._files.create(self._path(name), True)
        try:
            stream.write(bytearray(text.encode()))
        finally:
            stream.close()

    def _path(self, name: str) -> Any:
        return self._jvm.org.apache.hadoop.fs.Path(self._root, name)
