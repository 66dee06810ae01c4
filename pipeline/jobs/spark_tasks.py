"""Runs the parts of a job as tasks of one Spark job, and returns each result when its task ends.

Spark returns the results of a job only when all tasks have ended. Accumulators are updated when
each task ends, and only by its first successful attempt. So results are returned in an accumulator.
"""

import re
import threading
import uuid
from collections.abc import Callable, Generator, Iterable, Sequence
from typing import Any, TypeVar

from pyspark import Accumulator, SparkContext
from pyspark.accumulators import AccumulatorParam
from pyspark.sql import SparkSession

from odradek.pipeline.jobs import JobError
from odradek.pipeline.session import classic_context

Item = TypeVar("Item")
Result = TypeVar("Result")
_POLL_S = 0.05
PYTHON_ERROR = re.compile(
    r"^(?:[\w.]+\.)?(\w+(?:Error|Exception|Exit|Interrupt)\b.*)$", re.MULTILINE
)


class SparkTasks:
    """Runs the parts of a job on the cluster of a session. Raises NoSparkError."""

    def __init__(self, spark: SparkSession) -> None:
        self._context = classic_context(spark)

    @property
    def parallelism(self) -> int:
        """The number of cores for tasks, as far as Spark knows it."""
        return max(self._context.defaultParallelism, 1)

    def run(
        self, work: Callable[[Item], Iterable[Result]], items: Sequence[Item], description: str
    ) -> Generator[tuple[int, list[Result]], None, None]:
        """See TaskRunner."""
        if not items:
            return
        ended: Accumulator[list[tuple[int, list[Result]]]] = self._context.accumulator(
            [], _Appended()
        )
        job = _Job(self._context, _task(work, ended), items, description)
        returned: set[int] = set()
        taken = 0
        try:
            running = True
            while running:
                running = job.is_running(_POLL_S)
                results = ended.value[taken:]
                taken += len(results)
                for index, result in results:
                    if index not in returned:
                        returned.add(index)
                        yield index, result
        finally:
            job.cancel()
        job.check()


class _Job(threading.Thread):
    """A Spark job, which runs in a thread so that its results can be polled."""

    def __init__(
        self,
        context: SparkContext,
        task: Callable[[Iterable[tuple[int, Any]]], None],
        items: Sequence[Any],
        description: str,
    ) -> None:
        super().__init__(name=description, daemon=True)
        self._context = context
        self._task = task
        self._items = list(enumerate(items))
        self._description = description
        self._group = f"odradek-{uuid.uuid4().hex}"
        self._error: Exception | None = None
        self.start()

    def run(self) -> None:
        try:
            self._context.setJobGroup(self._group, self._description, interruptOnCancel=True)
            self._context.parallelize(self._items, len(self._items)).foreachPartition(self._task)
        except Exception as error:  # noqa: BLE001 # a thread's root; check() raises it
            self._error = error

    def is_running(self, wait_s: float) -> bool:
        """Wait at most this long for the end."""
        self.join(wait_s)
        return self.is_alive()

    def cancel(self) -> None:
        """Cancel the job if it is still running."""
        if self.is_alive():
            self._context.cancelJobGroup(self._group)
            self.join()

    def check(self) -> None:
        """Raise JobError if the job failed."""
        if self._error is not None:
            raise JobError(f"{self._description}: {short_reason(self._error)}") from self._error


class _Appended(AccumulatorParam[list[Any]]):
    def zero(self, value: list[Any]) -> list[Any]:  # noqa: ARG002 # pyspark's
        return []

    def addInPlace(self, value1: list[Any], value2: list[Any]) -> list[Any]:  # noqa: N802 # pyspark's
        value1 += value2
        return value1


def _task(
    work: Callable[[Item], Iterable[Result]], ended: Accumulator[list[tuple[int, list[Result]]]]
) -> Callable[[Iterable[tuple[int, Item]]], None]:
    def run_items(numbered: Iterable[tuple[int, Item]]) -> None:
        for index, item in numbered:
            ended.add([(index, list(work(item)))])

    return run_items


def short_reason(error: Exception) -> str:
    """Return the last Python error in a message of Spark's, or its first line."""
    lines: list[str] = PYTHON_ERROR.findall(str(error))
    if lines:
        return lines[-1]
    return next((line for line in str(error).splitlines() if line.strip()), type(error).__name__)
