"""The columns of an archive's Delta table, and the entries of its files in the table's log.

topic, date      the directories; the timestamp's date, null outside the years 1 to 9999
key ... headers  as in a topic
topicId          tells a topic from an earlier one of the same name
timestampMs      the timestamp in milliseconds if it is outside the years 1 to 9999: `timestamp` is
                 the nearest that fits into microseconds
error            why the value does not match the schema that was given; null if it does
(others)         the fields of values, if a schema was given
"""

import datetime
import json
import time

import pyarrow as pa
from deltalake import DeltaTable, Field
from deltalake.exceptions import DeltaError
from deltalake.schema import PrimitiveType
from deltalake.transaction import AddAction, RemoveAction

from odradek.pipeline.decoding.columns import TIMESTAMP_MS, schema_of
from odradek.pipeline.jobs import JobError
from odradek.pipeline.jobs.archive.parquet.dated_files import WrittenFile
from odradek.pipeline.jobs.archive.parquet.parquet_format import RECORD_SCHEMA
from odradek.pipeline.jobs.archive.parquet.storage import ArchiveLocation

PARTITION_COLUMNS = ("topic", "date")
TABLE_SCHEMA = pa.schema(
    [
        *schema_of(["topic"]),
        pa.field("date", pa.date32()),
        *RECORD_SCHEMA,
        *schema_of([TIMESTAMP_MS]),
        pa.field("topicId", pa.string()),
        pa.field("error", pa.string()),
    ]
)
_CONFIGURATION = {
    # Of other columns readers would use no statistics.
    "delta.dataSkippingStatsColumns": "partition,offset,timestamp",
    # Vacuum deletes what earlier versions need. A table that is followed has thousands a day.
    "delta.logRetentionDuration": "interval 7 days",
}
_US_PER_S = 1_000_000


def is_archive(location: ArchiveLocation) -> bool:
    """Whether there is a table."""
    return DeltaTable.is_deltatable(location.uri, dict(location.options))


def create_table(location: ArchiveLocation, schema: pa.Schema = TABLE_SCHEMA) -> None:
    """Create the table if there is none. Raises JobError."""
    try:
        DeltaTable.create(
            location.uri,
            schema,
            mode="ignore",
            partition_by=list(PARTITION_COLUMNS),
            configuration=_CONFIGURATION,
            storage_options=dict(location.options),
        )
    except (DeltaError, OSError) as error:
        raise JobError(f"cannot create the archive {location}: {error}") from error


def add_action(file: WrittenFile, *, data_change: bool = True) -> AddAction:
    """Return the entry for a file in the table's log."""
    smallest: dict[str, object] = {"partition": file.partitions[0], "offset": file.offsets[0]}
    largest: dict[str, object] = {"partition": file.partitions[1], "offset": file.offsets[1]}
    if file.date is not None:
        smallest["timestamp"], largest["timestamp"] = map(_iso, file.times_us)
    stats = {"numRecords": file.records, "minValues": smallest, "maxValues": largest}
    stats["nullCount"] = dict.fromkeys(smallest, 0)
    return AddAction(
        path=file.path,
        size=file.size_bytes,
        partition_values={"topic": file.topic, "date": file.date},
        modification_time=time.time_ns() // 1_000_000,
        data_change=data_change,
        stats=json.dumps(stats),
    )


def remove_action(path: str, *, data_change: bool = False) -> RemoveAction:
    """Return the entry for a file whose records are in another one, or with `data_change` not."""
    now_ms = time.time_ns() // 1_000_000
    return RemoveAction(path=path, data_change=data_change, deletion_timestamp=now_ms)


def _iso(time_us: int) -> str:
    seconds, micros = divmod(time_us, _US_PER_S)
    epoch = datetime.datetime.fromtimestamp(0, datetime.UTC)
    moment = epoch + datetime.timedelta(seconds=seconds, microseconds=micros)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def type_name(field: Field) -> str:
    """Return the type of a column as an error message shows it."""
    kind = field.type
    return kind.type if isinstance(kind, PrimitiveType) else kind.to_json()
