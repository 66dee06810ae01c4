"""A process in which streaming queries run: `python -m … SETTINGS`, which is JSON.

Each query copies a topic, by the files of a broker or through it, into Parquet files, or as the
options `to` say. Without `rows` it goes on until somebody kills it; with, it ends when all that is
there has been read, and puts there what the files hold by then, as a reader of them sees it.
"""

import json
import pickle
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from odradek.pipeline import register
from odradek.pipeline.session import make_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

# Else a kill in the middle of a checkpoint's first file is what Spark refuses to go on from.
LEFT_BY_A_KILL = "spark.sql.streaming.verifyCheckpointDirectoryEmptyOnStart"
# Partition, offset, value.
Seen = tuple[int, int, bytes]


def main() -> None:
    """Run one query for each mode."""
    settings = json.loads(sys.argv[1])
    root = Path(settings["root"])
    spark = make_session("local[2]", "streaming", {LEFT_BY_A_KILL: "false", **settings["conf"]})
    ends = "rows" in settings
    to = settings.get("to")
    queries = [
        _start(spark, root, mode, settings["options"], to, ends) for mode in settings["modes"]
    ]
    if not ends:
        spark.streams.awaitAnyTermination()
        raise SystemExit("a query has ended")
    for query in queries:
        query.awaitTermination()
    copied = settings["modes"] if to is None else ()
    found = {mode: _rows(spark, root / mode / "out") for mode in copied}
    Path(settings["rows"]).write_bytes(pickle.dumps(found))
    spark.stop()


def _start(
    spark: "SparkSession",
    root: Path,
    mode: str,
    options: dict[str, str],
    to: dict[str, str] | None,
    ends: bool,
) -> "StreamingQuery":
    # Queries of one registration share a map of Spark's, which the start of one writes while the
    # start of the other may be serialising it.
    register(spark)
    source = spark.readStream.format("odradek").options(**options, mode=mode).load()
    trigger: dict[str, Any] = {"availableNow": True} if ends else {"processingTime": "0 seconds"}
    checkpoint = str(root / mode / "checkpoint")
    writer = source.select("partition", "offset", "value").writeStream.trigger(**trigger)
    writer = writer.option("checkpointLocation", checkpoint)
    if to is None:
        return writer.format("parquet").start(str(root / mode / "out"))
    return writer.format("odradek").options(**to).start()


def _rows(spark: "SparkSession", out: Path) -> list[Seen]:
    frame = spark.read.parquet(str(out))
    return sorted((row.partition, row.offset, bytes(row.value)) for row in frame.collect())


if __name__ == "__main__":
    main()
