"""Lists the files of the Delta table in an Iceberg catalog, too: the same files, none is copied.

The catalog is a file of SQLite, as PyIceberg's SqlCatalog and Iceberg's JdbcCatalog have it. Beside
it is a directory with the metadata of its tables:

    catalog.db
    catalog.db-metadata/ARCHIVE/     snapshots and lists of files of the table archives.ARCHIVE

The Delta table stays the only authority. `follow` compares the files of both tables, and one commit
of the catalog adds what the Iceberg table lacks and removes what the Delta table no longer has. So
a process that is killed between the two commits leaves an Iceberg table of an earlier version, and
the next run brings it up to date. Each snapshot names the version of the Delta table that it has. A
commit is made only on the snapshot that it was computed from, else it is computed again.

The files have no field ids, so a name mapping finds their columns; `topic` and `date` are not in
the files, and readers take them from the list of files. Bounds are given of offsets and partitions
alone: they are exact, and those that Delta's log has of timestamps may be cut to milliseconds.
"""

import datetime
import time
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path

import pyarrow as pa
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.conversions import to_bytes
from pyiceberg.exceptions import (
    CommitFailedException,
    NoSuchTableError,
    TableAlreadyExistsError,
)
from pyiceberg.manifest import DataFile as IcebergFile
from pyiceberg.manifest import DataFileContent, FileFormat
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.table.snapshots import Snapshot
from pyiceberg.typedef import Record
from pyiceberg.types import PrimitiveType
from sqlalchemy import event
from sqlalchemy.exc import SQLAlchemyError

from odradek.pipeline.jobs import CatalogError, JobError
from odradek.pipeline.jobs.archive.parquet.storage import ArchiveFiles, ArchiveLocation
from odradek.storage.files import Files

from .archive_table import ArchiveTable
from .data_files import DataFile
from .table_format import PARTITION_COLUMNS

_NAMESPACE = "archives"
_ARCHIVE_ID = "odradek.delta-table-id"
_VERSION = "odradek.delta-version"
_NAME_MAPPING = "schema.name-mapping.default"
_PROPERTIES = {
    # PyIceberg's own attempts would add files that another process has added in the meantime.
    "commit.retry.num-retries": "0",
    "commit.manifest-merge.enabled": "true",
    "write.metadata.previous-versions-max": "10",
}
_MAX_ATTEMPTS = 5
_MAX_SNAPSHOTS = 100
_MAX_SNAPSHOT_AGE_MS = 7 * 86_400_000  # the files of older ones may be deleted
_UNUSED_AGE_MS = 3_600_000
_EPOCH = datetime.date(1970, 1, 1)


class IcebergCopy:
    """The Iceberg table of one archive."""

    def __init__(self, catalog: Path, location: ArchiveLocation, files: Files) -> None:
        """Open the catalog, which is created if there is none. Raises JobError."""
        if location.directory is None:
            raise JobError(
                f"{location} is in an object store; an Iceberg catalog needs a directory"
            )
        self._path, directory = catalog.resolve(), location.directory.resolve()
        if self._path.is_relative_to(directory):
            raise JobError(
                f"the Iceberg catalog {catalog} must not be in the archive, whose vacuum deletes "
                f"other files"
            )
        self._name = (_NAMESPACE, directory.name)
        self._root = f"file://{directory}"
        self._files = ArchiveFiles(ArchiveLocation(str(self._path.parent)), files)
        self._metadata = f"{self._path.name}-metadata/{directory.name}"
        self._followed = -1
        self._known: tuple[Snapshot | None, dict[str, IcebergFile]] = (None, {})
        try:
            self._catalog = SqlCatalog("odradek", uri=f"sqlite:///{self._path}")
            self._catalog.create_namespace_if_not_exists(_NAMESPACE)
        except SQLAlchemyError as error:
            raise self._failure(error) from error
        self._synced = set(self._files.modified_ms(self._metadata))
        event.listen(self._catalog.engine, "commit", lambda _: self._sync())

    def follow(self, archive: ArchiveTable) -> None:
        """Bring the Iceberg table to the version of the Delta table.

        Raises CatalogError, JobError if the Iceberg table is not that of this archive.
        """
        if archive.delta.version() == self._followed:
            return
        self._attempt(lambda: self._commit(archive))
        self._followed = archive.delta.version()

    def clean(self, archive: ArchiveTable) -> None:
        """Forget old snapshots, and delete metadata that no other needs. Raises JobError."""
        now_ms = time.time_ns() // 1_000_000
        self._attempt(lambda: self._expire(archive, now_ms - _MAX_SNAPSHOT_AGE_MS))
        self._attempt(lambda: self._delete_unused(archive, now_ms - _UNUSED_AGE_MS))

    def _attempt(self, act: Callable[[], None]) -> None:
        """Do it again if another process has committed at the same time. Raises JobError."""
        try:
            with closing(self._catalog):
                for left in reversed(range(_MAX_ATTEMPTS)):
                    try:
                        return act()
                    except (CommitFailedException, TableAlreadyExistsError):
                        if not left:
                            raise
        except JobError:
            raise
        except Exception as error:  # those of pyiceberg and SQLAlchemy have no common base
            raise self._failure(error) from error

    def _expire(self, archive: ArchiveTable, before_ms: int) -> None:
        table = self._load(archive)
        named = {each.snapshot_id for each in table.metadata.refs.values()}
        newest = sorted(table.snapshots(), key=lambda each: -each.timestamp_ms)
        old = [
            each.snapshot_id
            for rank, each in enumerate(newest)
            if each.snapshot_id not in named
            and (rank >= _MAX_SNAPSHOTS or each.timestamp_ms < before_ms)
        ]
        if old:
            table.maintenance.expire_snapshots().by_ids(old).commit()

    def _delete_unused(self, archive: ArchiveTable, before_ms: int) -> None:
        table = self._load(archive)
        used = {table.metadata_location}
        used.update(each.metadata_file for each in table.metadata.metadata_log)
        for snapshot in table.snapshots():
            used.add(snapshot.manifest_list)
            used.update(each.manifest_path for each in snapshot.manifests(table.io))
        for path, modified_ms in self._files.modified_ms(self._metadata).items():
            if f"file://{self._path.parent / path}" not in used and modified_ms < before_ms:
                with suppress(FileNotFoundError):  # another process has deleted it
                    self._files.delete(path)

    def _commit(self, archive: ArchiveTable) -> None:
        table = self._load(archive)
        version = self._version(table)
        if version > archive.delta.version():
            archive.refresh()  # another process has committed to both
        if version > archive.delta.version():
            raise self._refusal("is that of a later version of the archive")
        there = self._files_of(table)
        wanted = DataFile.all_of(pa.table(archive.delta.get_add_actions(flatten=True)))
        uris = {f"{self._root}/{each.path}": each for each in wanted}
        removed = [there[uri] for uri in there.keys() - uris.keys()]
        filesystem = archive.files.filesystem
        with table.transaction() as change:
            with change.update_schema() as columns:
                columns.union_by_name(_schema(archive))
            added = [
                _iceberg_file(uri, uris[uri], uris[uri].count_records(filesystem), table)
                for uri in sorted(uris.keys() - there.keys())
            ]
            if added or removed:
                update = change.update_snapshot({_VERSION: str(archive.delta.version())})
                with update.overwrite() if removed else update.merge_append() as files:
                    for each in added:
                        files.append_data_file(each)
                    for each in removed:
                        files.delete_data_file(each)
        there = {uri: file for uri, file in there.items() if uri in uris}
        there.update((each.file_path, each) for each in added)
        self._known = (table.current_snapshot(), there)

    def _files_of(self, table: Table) -> dict[str, IcebergFile]:
        """Return the files of the newest snapshot, by path."""
        snapshot, files = self._known
        if snapshot != table.current_snapshot():
            snapshot = table.current_snapshot()
            files = {
                entry.data_file.file_path: entry.data_file
                for manifest in (() if snapshot is None else snapshot.manifests(table.io))
                for entry in manifest.fetch_manifest_entry(table.io)
            }
        return files

    def _load(self, archive: ArchiveTable) -> Table:
        """Return the table, which is created if there is none. Raises JobError if it is another."""
        archive_id = str(archive.delta.metadata().id)
        try:
            table = self._catalog.load_table(self._name)
        except NoSuchTableError:
            return self._create(archive, archive_id)
        if table.properties.get(_ARCHIVE_ID) != archive_id or table.location() != self._root:
            raise self._refusal("is not that of this archive")
        if [each.name for each in table.spec().fields] != list(PARTITION_COLUMNS):
            raise self._refusal("was changed by another writer")
        return table

    def _version(self, table: Table) -> int:
        """Return the version of the Delta table that the newest snapshot has. Raises JobError."""
        if (snapshot := table.current_snapshot()) is None:
            return -1
        version = snapshot.summary and snapshot.summary.additional_properties.get(_VERSION)
        if not version:
            raise self._refusal("was changed by another writer")
        return int(version)

    def _create(self, archive: ArchiveTable, archive_id: str) -> Table:
        properties = {
            **_PROPERTIES,
            _ARCHIVE_ID: archive_id,
            "write.metadata.path": f"file://{self._path.parent / self._metadata}",
        }
        with self._catalog.create_table_transaction(
            self._name, _schema(archive), location=self._root, properties=properties
        ) as creation:
            with creation.update_spec() as spec:
                for name in PARTITION_COLUMNS:
                    spec.add_identity(name)
            mapping = creation.table_metadata.schema().name_mapping.model_dump_json()
            creation.set_properties({_NAME_MAPPING: mapping})
        return self._catalog.load_table(self._name)

    def _refusal(self, why: str) -> JobError:
        return JobError(
            f"the table {'.'.join(self._name)} of {self._path} {why}: drop it there, and the next "
            f"run makes it again, or name another file"
        )

    def _sync(self) -> None:
        """Sync the new files of the metadata before the catalog names them."""
        new = self._files.modified_ms(self._metadata).keys() - self._synced
        self._files.sync(new)
        self._synced |= new

    def _failure(self, error: Exception) -> CatalogError:
        reason = str(getattr(error, "orig", None) or error or type(error).__name__)
        return CatalogError(
            f"the Iceberg catalog {self._path}: {' '.join(reason.split())}. If it is damaged, "
            f"delete it and {self._path.name}-metadata: the next run makes both again"
        )


def _schema(archive: ArchiveTable) -> pa.Schema:
    return pa.schema(archive.delta.schema().to_arrow())


def _iceberg_file(uri: str, file: DataFile, records: int, table: Table) -> IcebergFile:
    lower, upper = (_bounds(table.schema(), file, which) for which in (0, 1))
    day = None if file.date is None else (datetime.date.fromisoformat(file.date) - _EPOCH).days
    made = IcebergFile.from_args(
        content=DataFileContent.DATA,
        file_path=uri,
        file_format=FileFormat.PARQUET,
        partition=Record(file.topic, day),
        record_count=records,
        file_size_in_bytes=file.size_bytes,
        lower_bounds=lower,
        upper_bounds=upper,
        value_counts=dict.fromkeys(lower, records),
        null_value_counts=dict.fromkeys(lower, 0),
    )
    made.spec_id = table.spec().spec_id
    return made


def _bounds(schema: Schema, file: DataFile, which: int) -> dict[int, bytes]:
    bounds = {}
    for name, both in (("partition", file.partitions), ("offset", file.offsets)):
        column = schema.find_field(name)
        kind = column.field_type
        if (bound := both[which]) is not None and isinstance(kind, PrimitiveType):
            bounds[column.field_id] = to_bytes(kind, bound)
    return bounds
