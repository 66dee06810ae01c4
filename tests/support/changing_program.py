"""A process in which streams run that fail: `python -m … SETTINGS`, which is JSON (Settings).

Each query copies values into a topic. It is started several times: when it has failed, or is
stopped, it is started again with other settings. The file `start-N` in its directory says that it
was started, and `error-N` has the text of its error. The process goes on until it is killed. With
`ends`, it ends when the queries have read all that is there.

Each start has a session of its own. Spark divides files by the settings that the session has when
a batch is planned: in a session of several queries, they are those of the last that was started.
"""

import json
import os
import random
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict

from odradek.pipeline import register
from odradek.pipeline.session import make_session
from tests.support.streaming_program import LEFT_BY_A_KILL

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

FAILURE = "a task fails, as the test wants it"


class QuerySettings(TypedDict):
    """A start of a query: the format and the options of its source, and the options of its sink.

    If `topic` is not empty, it is the value of the column of that name.
    """

    format: str
    source: dict[str, str]
    sink: dict[str, str]
    topic: str
    # Settings of the session.
    conf: dict[str, str]
    # How many of a thousand tasks fail.
    fail: int
    # When it is stopped, unless it is the last start.
    stop_after_s: float


class Settings(TypedDict):
    """What the process is told: for each query its starts."""

    root: str
    master: str
    conf: dict[str, str]
    ends: bool
    queries: dict[str, list[QuerySettings]]


def main() -> None:
    """Run the queries."""
    settings: Settings = json.loads(sys.argv[1])
    root, ends = Path(settings["root"]), settings["ends"]
    conf = {LEFT_BY_A_KILL: "false", **settings["conf"]}
    spark = make_session(settings["master"], "changing", conf)
    queries = [
        _Query(spark, root / name, starts, ends=ends)
        for name, starts in settings["queries"].items()
    ]
    while True:
        ended = [query.has_ended() for query in queries]  # each has its turn
        if ends and all(ended):
            break
        time.sleep(0.05)
    spark.stop()


class _Query:
    """A query that is started again and again."""

    def __init__(
        self, spark: "SparkSession", directory: Path, starts: list[QuerySettings], *, ends: bool
    ) -> None:
        self._spark, self._directory, self._starts, self._ends = spark, directory, starts, ends
        self._number = -1
        self._stop_at = 0.0
        self._running: StreamingQuery | None = None

    def has_ended(self) -> bool:
        """Whether the last start has ended. Stop the query, or start it again, if it is time to."""
        is_last = self._number == len(self._starts) - 1
        if self._running is not None and self._running.isActive:
            if is_last or time.monotonic() < self._stop_at:
                return False
            self._running.stop()
        if self._running is not None:
            self._note(self._running.exception())
            self._running = None
        if not is_last:
            self._number += 1
            self._start(self._starts[self._number])
        return is_last

    def _start(self, settings: QuerySettings) -> None:
        (self._directory / f"start-{self._number}").touch()
        self._stop_at = time.monotonic() + settings["stop_after_s"]
        session = self._spark.newSession()
        for name, value in settings["conf"].items():
            session.conf.set(name, value)
        try:
            self._running = _start(session, self._directory, settings, ends=self._ends)
        except Exception as error:  # noqa: BLE001 - Spark's own, of many kinds
            self._note(error)

    def _note(self, error: Exception | None) -> None:
        if error is not None:
            fresh = self._directory / "error"
            fresh.write_text("\ncaused by: ".join(_texts(error)))
            fresh.rename(self._directory / f"error-{self._number}")


def _texts(error: BaseException | None) -> Iterator[str]:
    """The texts of an error of Spark's and of its causes. Some have only the reason in a cause."""
    while error is not None:
        yield str(error)
        error = getattr(error, "_cause", None)


def _start(
    spark: "SparkSession", directory: Path, settings: QuerySettings, *, ends: bool
) -> "StreamingQuery":
    register(spark)  # streams of one registration share a map that Spark does not guard
    source = spark.readStream.format(settings["format"]).options(**settings["source"]).load()
    values = source.selectExpr("CAST(value AS BINARY) AS value")
    thousandths = settings["fail"]

    def failing(batches: "Iterator[pa.RecordBatch]") -> "Iterator[pa.RecordBatch]":
        rng = random.SystemRandom()  # workers are forks, with the same state of `random`
        fails, after = rng.randrange(1000) < thousandths, rng.randrange(4)
        for number, batch in enumerate(batches):
            if fails and number == after:
                _fail(rng)
            yield batch
        if fails:
            _fail(rng)

    trigger: dict[str, Any] = {"availableNow": True} if ends else {"processingTime": "0 seconds"}
    rows = values.mapInArrow(failing, "value binary")
    if settings["topic"]:
        rows = rows.selectExpr("value", f"'{settings['topic']}' AS topic")
    writer = rows.writeStream.format("odradek")
    writer = writer.options(**settings["sink"]).trigger(**trigger)
    return writer.option("checkpointLocation", str(directory / "checkpoint")).start()


def _fail(rng: random.Random) -> None:
    time.sleep(rng.uniform(0, 1))  # meanwhile other tasks of the batch may commit
    match rng.randrange(3):
        case 0:
            os._exit(1)
        case 1:
            os.kill(os.getpid(), signal.SIGKILL)
    raise OSError(FAILURE)


if __name__ == "__main__":
    main()
