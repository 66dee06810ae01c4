"""Which job a checkpoint belongs to: a small file in it, wherever Spark can write.

    odradek-etl.json    {"job": "large-orders", "reads": ["orders"]}

Spark keeps offsets by the position of a source in its plan and asks no name: a job that takes
another's checkpoint would skip what the other has read, and a SQL that reads its sources in another
order would take the offsets of one for those of the other. Both are refused here. Other changes of
a job are Spark's to judge.
"""

import json
from typing import TYPE_CHECKING, Any

from py4j.protocol import Py4JError  # type: ignore[import-untyped]  # py4j tells no types
from pyspark.errors import PySparkException

from odradek.pipeline.jobs.job_error import JobError

from .failures import first_line

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import SparkSession

NAME = "odradek-etl.json"
_ADVICE = "set another checkpoint"


def check_checkpoint(
    spark: "SparkSession", checkpoint: str, job: str, reads: "Sequence[str]"
) -> bool:
    """Whether a query of this job goes on from it; else there is none yet. Raises JobError."""
    try:
        directory = _Directory(spark, checkpoint)
        noted = directory.read(NAME) if directory.has("offsets") else None
        if noted is None and directory.has("offsets"):
            raise JobError(
                f"the checkpoint {checkpoint} is of another query, not of this job: {_ADVICE}"
            )
    except (Py4JError, PySparkException) as error:
        raise JobError(f"the checkpoint {checkpoint}: {first_line(error)}") from error
    if noted is not None:
        _check_note(noted, checkpoint, job, list(reads))
    return noted is not None


def claim_checkpoint(
    spark: "SparkSession", checkpoint: str, job: str, reads: "Sequence[str]"
) -> bool:
    """The same, and a new one is noted to be of this job. Raises JobError."""
    goes_on = check_checkpoint(spark, checkpoint, job, reads)
    if not goes_on:
        try:
            text = json.dumps({"job": job, "reads": list(reads)})
            _Directory(spark, checkpoint).write(NAME, text)
        except (Py4JError, PySparkException) as error:
            raise JobError(f"the checkpoint {checkpoint}: {first_line(error)}") from error
    return goes_on


def _check_note(text: str, checkpoint: str, job: str, reads: list[str]) -> None:
    try:
        noted = json.loads(text)
        of_job, then = noted["job"], noted["reads"]
    except (ValueError, KeyError, TypeError):
        raise JobError(f"the checkpoint {checkpoint}: {NAME} in it is damaged") from None
    if of_job != job:
        raise JobError(
            f"the checkpoint {checkpoint} is of the job '{of_job}', and this is '{job}': {_ADVICE}"
        )
    if then != reads:
        raise JobError(
            f"the checkpoint {checkpoint} is of another SQL, which read {', '.join(then)}; now it "
            f"reads {', '.join(reads)}: {_ADVICE}"
        )


class _Directory:
    """On a file system of Hadoop's."""

    def __init__(self, spark: "SparkSession", path: str) -> None:
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
