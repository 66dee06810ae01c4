"""Archives that are made without Spark, and what a reader sees in them."""

from collections.abc import Callable, Generator, Iterable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import pyarrow as pa
from deltalake import DeltaTable

from odradek.pipeline.jobs.archive.job import ArchiveSettings, run_archive
from odradek.pipeline.jobs.archive.parquet.storage import ArchiveLocation
from odradek.pipeline.jobs.archive.summary import ArchiveSummary
from odradek.pipeline.jobs.progress import NO_PROGRESS
from odradek.protocol.record import Record
from odradek.protocol.records.control import ControlRecordType, control_type
from odradek.storage.files import Files
from odradek.storage.log import PartitionLog
from odradek.storage.log_reader import LogReader
from tests.support.crashing_files import QuickFiles
from tests.support.dirty_logs import Writer
from tests.support.log_box import LogBox

Item = TypeVar("Item")
Result = TypeVar("Result")
Row = tuple[Any, ...]


class InThisProcess:
    """Runs the parts of a job one behind the other; `attempts` times each, as speculation does."""

    parallelism = 2

    def __init__(self, attempts: int = 1) -> None:
        self.attempts = attempts

    def run(
        self,
        work: Callable[[Item], Iterable[Result]],
        items: Sequence[Item],
        description: str,
    ) -> Generator[tuple[int, list[Result]], None, None]:
        for index, item in enumerate(items):
            results = [list(work(item)) for _ in range(self.attempts)]
            yield index, results[0]


def at(path: Path) -> ArchiveLocation:
    """The archive in a directory."""
    return ArchiveLocation(str(path))


def small_segments(root: Path) -> LogBox:
    """An empty log with segments of a few batches, to be archived from root/log."""
    return LogBox(root / "log", files=QuickFiles(), segment_bytes=2000, segment_index_bytes=1024)


def write_more(log: PartitionLog, batches: int) -> None:
    """Append so many batches, of no idempotent producer."""
    Writer(log.log_end_offset, producers=False).write(log, batches)


def archive_here(
    settings: ArchiveSettings, files: Files | None = None, **how: Any
) -> ArchiveSummary:
    """Bring an archive up to date, in this process."""
    return run_archive(InThisProcess(**how), settings, NO_PROGRESS, files)


def seen(archive: ArchiveLocation) -> pa.Table:
    """What somebody sees who knows nothing of odradek: a reader of Delta tables."""
    return DeltaTable(archive.uri, storage_options=dict(archive.options)).to_pyarrow_table()


def rows_of(table: pa.Table) -> list[Row]:
    """Topic, partition, offset, key, value, milliseconds, type of timestamp, headers; sorted."""
    if not table.num_rows:
        return []
    stamps = [stamp // 1000 for stamp in table["timestamp"].cast(pa.int64()).to_pylist()]
    headers = [
        tuple((each["key"], each["value"]) for each in pairs or ())
        for pairs in table["headers"].to_pylist()
    ]
    names = ("topic", "partition", "offset", "key", "value")
    columns = [table[name].to_pylist() for name in names]
    types = table["timestampType"].to_pylist()
    return sorted(zip(*columns, stamps, types, headers, strict=True), key=lambda row: row[:3])


def data_files(archive: ArchiveLocation) -> list[Path]:
    """Those that readers look at."""
    return sorted(map(Path, DeltaTable(archive.uri).file_uris()))


def topic_of(directory: Path) -> tuple[str, int]:
    """Which partition a directory is."""
    topic, _, partition = directory.name.rpartition("-")
    return topic, int(partition)


def logged(directory: Path, *, committed: bool = True) -> list[Row]:
    """What a consumer of the whole partition sees, read batch by batch, as `rows_of` gives it."""
    seen: list[list[Row]] = []
    undecided: dict[int, list[list[Row]]] = {}
    for batch in LogReader(directory).batches():
        header, records = batch.header, list(batch.records())
        if header.is_control:
            is_abort = control_type(records[0].key) is ControlRecordType.ABORT
            for each in undecided.pop(header.producer_id, []):
                if is_abort and committed:
                    each.clear()
            continue
        kind = int(header.is_log_append_time)
        seen.append([_row(topic_of(directory), record, kind) for record in records])
        if header.is_transactional:
            undecided.setdefault(header.producer_id, []).append(seen[-1])
    return [row for each in seen for row in each]


def _row(partition: tuple[str, int], record: Record, kind: int) -> Row:
    content = (record.offset, record.key, record.value, record.timestamp_ms, kind, record.headers)
    return (*partition, *content)
