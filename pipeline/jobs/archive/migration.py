"""Makes a Delta table of an archive of version 0.1, which kept a manifest of its own.

The data files stay where they are, and become the table's files in one commit. Two kinds are
written again: dead letters, which had a directory of their own, and the records of earlier topics
of the same name, which need a topic id in each row.

    _odradek/manifest/00000000000000000001.json    an entry for each commit: ranges, files added,
                                                    files replaced
    _odradek/staging/RUN/                          files of an entry that are not renamed yet
"""

import uuid
from collections.abc import Iterator, Sequence, Set
from pathlib import Path
from typing import NamedTuple

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from odradek.pipeline.jobs import JobError
from odradek.storage.files import Files, LockHeldError

from .dated_files import WrittenFile, date_directory
from .parquet_format import open_writer
from .state import ArchivedRange, ArchiveState, PartitionKey
from .storage import INTERNAL_DIRECTORY, ArchiveLocation
from .table import ArchiveTable
from .table_format import TABLE_SCHEMA, create_table

_MANIFEST = Path(INTERNAL_DIRECTORY) / "manifest"
_MIGRATED = Path(INTERNAL_DIRECTORY) / "migrated-manifest"
_STAGING = Path(INTERNAL_DIRECTORY) / "staging"
_LOCK = Path(INTERNAL_DIRECTORY) / "lock"
_US_PER_MS = 1000


class _Range(msgspec.Struct, kw_only=True):
    of: PartitionKey
    start: int
    end: int


class _File(msgspec.Struct, kw_only=True):
    of: PartitionKey
    path: str
    staged: str
    date: str | None
    records: int
    size_bytes: int
    first_offset: int
    last_offset: int
    times_ms: tuple[int, int]
    schema_id: str
    is_dead_letters: bool = False


class _Entry(msgspec.Struct, kw_only=True):
    number: int
    run_id: str
    ranges: tuple[_Range, ...] = ()
    files: tuple[_File, ...] = ()
    replaced: tuple[str, ...] = ()
    partitions: dict[str, int] = {}


def refuse_manifest(location: ArchiveLocation) -> None:
    """Raise JobError if the archive is one of version 0.1."""
    if location.directory is not None and (location.directory / _MANIFEST).is_dir():
        raise JobError(
            f"{location} was made by version 0.1: run `odradek pipeline migrate-archive {location}`"
        )


class Migrated(NamedTuple):
    """What was migrated; `copied` counts the files that were written again."""

    files: int
    records: int
    copied: int


def migrate(location: ArchiveLocation, files: Files | None = None) -> Migrated:
    """Migrate an archive. It may be killed and run again. Raises JobError, OSError."""
    root = location.directory
    if root is None or not (root / _MANIFEST).is_dir():
        raise JobError(f"{location} is not an archive of version 0.1: it has no manifest")
    files = files or Files()
    try:
        lock = files.lock(root / _LOCK)
    except LockHeldError as error:
        raise JobError(f"another process is archiving to {location}: {error}") from error
    try:
        migrated = _Migration(location, root, files).run()
        files.rename(root / _MANIFEST, root / _MIGRATED)
        files.fsync_directory(root / INTERNAL_DIRECTORY)
        if (root / _STAGING).is_dir():
            files.remove_tree(root / _STAGING)
        return migrated
    finally:
        lock.release()


class _Migration:
    def __init__(self, location: ArchiveLocation, root: Path, files: Files) -> None:
        self._location = location
        self._root = root
        self._files = files
        self._entries = list(_entries(files, root / _MANIFEST))

    def run(self) -> Migrated:
        """Commit all files. Raises JobError, OSError."""
        self._publish()
        there = [file for file in self._live().values() if (self._root / file.path).exists()]
        create_table(self._location)
        table = ArchiveTable(self._location, self._files)
        schemas = self._schemas(there)
        for schema in schemas.values():
            table.add_columns(schema)
        state = self._state(
            {file.of for file in there if "value" not in schemas[file.schema_id].names}
        )
        newest = {key.topic: key.topic_id for key in state.partitions}
        written: list[WrittenFile] = []
        if not table.state.partitions:  # else an earlier run was killed after its commit
            written = [self._written(file, newest, table) for file in there]
            table.append(written, lambda _: state)
        copied = sum(new.path != old.path for new, old in zip(written, there, strict=False))
        return Migrated(len(there), sum(file.records for file in there), copied)

    def _live(self) -> dict[str, _File]:
        live: dict[str, _File] = {}
        for entry in self._entries:
            for path in entry.replaced:
                live.pop(path, None)
            live.update((file.path, file) for file in entry.files)
        return live

    def _publish(self) -> None:
        """Rename the files that a killed run had committed and not renamed."""
        live = self._live()
        for entry in self._entries:
            for file in entry.files:
                staged = self._root / _STAGING / entry.run_id / file.staged
                if file.path in live and staged.exists():
                    self._files.make_directory((self._root / file.path).parent)
                    self._files.rename(staged, self._root / file.path)

    def _schemas(self, files: Sequence[_File]) -> dict[str, pa.Schema]:
        """Return the schemas of all files by their ids."""
        examples = {file.schema_id: file.path for file in files}
        return {key: pq.read_schema(self._root / path) for key, path in examples.items()}

    def _state(self, without_values: Set[PartitionKey]) -> ArchiveState:
        state = ArchiveState()
        for entry in self._entries:
            ranges = [ArchivedRange(each.of, each.start, each.end) for each in entry.ranges]
            state = state.with_ranges(ranges, entry.partitions)
        newest = {key.topic: key.topic_id for key in state.partitions}
        partitions = {
            key: msgspec.structs.replace(
                each,
                migrated=newest[key.topic] == key.topic_id,
                dropped_values=key in without_values,
            )
            for key, each in state.partitions.items()
        }
        return ArchiveState(partitions, state.counts)

    def _written(self, file: _File, newest: dict[str, str], table: ArchiveTable) -> WrittenFile:
        topic_id = file.of.topic_id if file.of.topic_id != newest[file.of.topic] else ""
        path, size_bytes = file.path, file.size_bytes
        if file.is_dead_letters or topic_id:
            path, size_bytes = self._rewritten(file, topic_id, table)
        return WrittenFile(
            path=path,
            topic=file.of.topic,
            date=file.date,
            records=file.records,
            size_bytes=size_bytes,
            partitions=(file.of.partition, file.of.partition),
            offsets=(file.first_offset, file.last_offset),
            times_us=(file.times_ms[0] * _US_PER_MS, file.times_ms[1] * _US_PER_MS),
            is_dead_letters=file.is_dead_letters,
        )

    def _rewritten(self, file: _File, topic_id: str, table: ArchiveTable) -> tuple[str, int]:
        """Copy a file to another place, with the topic id in each row; return its path and size."""
        source = pq.ParquetFile(self._root / file.path)
        schema = source.schema_arrow
        if topic_id:
            schema = schema.append(TABLE_SCHEMA.field("topicId"))
        directory = date_directory(file.of.topic, file.date)
        path = f"{directory}/{file.of.partition}-{file.first_offset:020}-{uuid.uuid4().hex}.parquet"
        with table.files.open_output(path) as output:
            with open_writer(output, schema) as writer:
                for group in range(source.num_row_groups):
                    rows = source.read_row_group(group)
                    if topic_id:
                        rows = rows.append_column("topicId", pa.repeat(topic_id, rows.num_rows))
                    writer.write_table(rows, row_group_size=max(rows.num_rows, 1))
            size_bytes = output.tell()
        table.files.sync([path])
        return path, size_bytes


def _entries(files: Files, manifest: Path) -> Iterator[_Entry]:
    names = [name for name in files.list_directory(manifest) if name.endswith(".json")]
    for number, name in enumerate(sorted(names), 1):
        try:
            entry = msgspec.json.decode(files.read(manifest / name), type=_Entry)
        except msgspec.DecodeError as error:
            raise JobError(f"{manifest / name} is not an entry of a manifest: {error}") from error
        if entry.number != number:
            raise JobError(f"{manifest}: entry {number} is missing")
        yield entry
