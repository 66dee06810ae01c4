"""Rows that are written by tasks which fail, or are overtaken. They run in Spark's process."""

import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

SLOW_SECONDS = 60.0


def write_failing(
    spark: "SparkSession", rows: int, size: int, options: Mapping[str, str], seen: str
) -> None:
    """What makes a task's rows fails in its first attempt, when most of them are made."""

    def failing(batches: "Iterator[pa.RecordBatch]") -> "Iterator[pa.RecordBatch]":
        attempt = note_attempt(seen)
        yield from batches
        if attempt == 0:
            raise OSError("the first attempt fails")

    frame = spark.range(0, rows, 1, 2).mapInArrow(failing, "id long")
    write_padded(frame, size, options)


def write_overtaken(
    spark: "SparkSession", rows: int, size: int, options: Mapping[str, str], seen: str
) -> None:
    """The first attempt of the second task is slow until another one has begun beside it."""

    def slow(batches: "Iterator[pa.RecordBatch]") -> "Iterator[pa.RecordBatch]":
        attempt = note_attempt(seen)
        for number, batch in enumerate(batches):
            yield batch
            if number == 6 and attempt == 0 and is_second():
                wait_for(Path(seen) / "1-1")

    frame = spark.range(0, rows, 1, 2).mapInArrow(slow, "id long")
    write_padded(frame, size, options)


def write_padded(frame: "DataFrame", size: int, options: Mapping[str, str]) -> None:
    """Write the column `id` as values of that many bytes."""
    padded = frame.selectExpr(f"lpad(cast(id as string), {size}, '0') as value")
    padded.write.format("odradek").mode("append").options(**options).save()


def note_attempt(seen: str) -> int:
    """Which attempt of the task this is; a file in `seen` tells that it began."""
    from pyspark import TaskContext

    context = TaskContext.get()
    assert context is not None
    (Path(seen) / f"{context.partitionId()}-{context.attemptNumber()}").touch()
    return context.attemptNumber()


def is_second() -> bool:
    """Whether it is the second task."""
    from pyspark import TaskContext

    context = TaskContext.get()
    return context is not None and context.partitionId() == 1


def wait_for(path: Path) -> None:
    """Return when it is there, and a moment later."""
    deadline = time.monotonic() + SLOW_SECONDS
    while not path.exists():
        assert time.monotonic() < deadline, f"{path} does not come"
        time.sleep(0.05)
    time.sleep(0.5)
