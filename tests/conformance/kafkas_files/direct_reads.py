"""The files read by the data source's own code, in this process: as Spark's driver and tasks do."""

from collections.abc import Iterator
from pathlib import Path

from odradek.pipeline.decoding.columns import ALL_COLUMNS
from odradek.pipeline.source.batch_reader import make_origin
from odradek.pipeline.source.options import read_options
from odradek.pipeline.source.planning import plan_batch
from odradek.pipeline.source.task import read_range
from tests.conformance.spark_jobs import Row

_US_PER_MS = 1000


def read_directly(data: Path, name: str, isolation: str, **more: str) -> list[Row]:
    """The records of the topics that begin with `name`, by partition, in the order of tasks."""
    options = read_options(
        {
            "path": str(data),
            "subscribePattern": f"{name}.*",
            "mode": "files",
            "includeHeaders": "true",
            "isolationLevel": isolation,
            **more,
        },
        streaming=False,
    )
    rows: list[Row] = []
    for wanted in plan_batch(make_origin(options), options):
        for batch in read_range(options, wanted, ALL_COLUMNS):
            columns = {name: batch.column(name) for name in ALL_COLUMNS}
            columns["timestamp"] = columns["timestamp"].cast("int64")
            rows += _rows({name: column.to_pylist() for name, column in columns.items()})
    return rows


def _rows(columns: "dict[str, list[object]]") -> Iterator[Row]:
    for key, value, topic, partition, offset, time_us, kind, headers in zip(
        *(columns[name] for name in ALL_COLUMNS), strict=True
    ):
        pairs = tuple((each["key"], each["value"]) for each in headers or ())  # type: ignore[attr-defined]
        time_ms = time_us // _US_PER_MS  # type: ignore[operator]
        yield Row(topic, partition, offset, key, value, time_ms, kind, pairs)  # type: ignore[arg-type]
