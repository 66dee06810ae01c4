"""The Delta table of an archive: commits records together with what they cover.

A commit adds files to the table. It also sets an application transaction (`txn` in Delta's
protocol) to the number of a file `_odradek/state-NUMBER.json`. The file was written before, and
says what is archived after the commit (state.py). So records and covered ranges change in one
atomic step. The number is no sequence number: it is 63 bits of the SHA-256 of the file.

Each commit is made against the state that it was computed from. If another process has changed the
state in the meantime, the table refuses the commit, because both set the same application
transaction. Then the new state is read and the change is applied to it, which fails if both have
archived the same offsets. If the answer of a commit is lost, the state's number tells whether the
commit was made.

The state names the version of the table that its commit was made on. Later commits of other writers
are examined before the state is used: if they have changed records, the table is refused
(other_writers.py), unless the user accepts the changes. Then a new state names them.
"""

import hashlib
import random
import re
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from contextlib import contextmanager, suppress
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import CommitProperties, DeltaTable, Schema, Transaction
from deltalake.exceptions import DeltaError, TableNotFoundError
from deltalake.transaction import AddAction, RemoveAction

from odradek.pipeline.jobs import JobError
from odradek.pipeline.jobs.archive.parquet.dated_files import WrittenFile
from odradek.pipeline.jobs.archive.parquet.storage import (
    INTERNAL_DIRECTORY,
    ArchiveFiles,
    ArchiveLocation,
    new_run_id,
)
from odradek.storage.files import Files

from .data_files import DataFile, PartitionRows, read_by_offset
from .merging import MergedFile
from .other_writers import LOG_DIRECTORY, Change, UnknownChangesError, find_changes
from .replacing import write_records, write_without
from .state import ArchiveState
from .table_format import PARTITION_COLUMNS, add_action, remove_action, type_name

_LAST_CHECKPOINT = "_last_checkpoint"
_APPLICATION = "odradek-archive"
_MAX_ATTEMPTS = 5
_RETRY_S = 0.2
_OLD_STATE_MS = 86_400_000
_UNREADABLE = frozenset({"columnMapping", "deletionVectors"})
_RESTORE_STATE = "copy it from where the table was copied from, or archive to another place"
_ACCEPT = (
    "let `odradek pipeline archive --accept-changes` take the table as it is: what is not there is "
    "not archived again"
)


class ArchiveTable:
    """The table as of its newest version when it was opened, refreshed, or last committed to."""

    def __init__(
        self,
        location: ArchiveLocation,
        files: Files | None = None,
        *,
        refuse_changes: bool = True,
    ) -> None:
        """Open the table. Raises JobError if there is none, OSError.

        Without `refuse_changes`, `accept_changes` must be called first.
        """
        self.location = location
        self.files = ArchiveFiles(location, files or Files())
        try:
            self.delta = DeltaTable(location.uri, storage_options=dict(location.options))
        except TableNotFoundError:
            raise JobError(f"{location} is not an archive: it has no Delta table") from None
        except (DeltaError, OSError) as error:
            raise JobError(f"cannot open the archive {location}: {_reason(error)}") from error
        self._check_format()
        self._synced: set[str] = set()  # names in _delta_log that are synced
        self._examined = -1  # the newest version whose changes are known
        with self._reading():
            self._number, self.state = self._read_state()
        if refuse_changes:
            self._refuse_changes()

    def _check_format(self) -> None:
        """Raise JobError if the table uses deletion vectors or column mapping.

        Then the Parquet files alone do not show its rows.
        """
        features = self.delta.protocol().reader_features or ()
        if found := _UNREADABLE.intersection(features):
            raise JobError(
                f"the table {self.location} has features that archives do not support: "
                f"{', '.join(sorted(found))}; remove them (ALTER TABLE … DROP FEATURE)"
            )

    # -- rows --------------------------------------------------------------------------------------

    def data_files(self, *topics: str) -> list[DataFile]:
        """Return the files with records of these topics. Raises JobError, OSError."""
        with self._reading():
            actions = pa.table(self.delta.get_add_actions(flatten=True))
        wanted = pa.array(topics, actions["partition.topic"].type)
        return DataFile.all_of(actions.filter(pc.is_in(actions["partition.topic"], wanted)))

    def rows(self, wanted: PartitionRows, columns: Sequence[str]) -> Iterator[pa.Table]:
        """Yield the rows of a partition in order of offset. Raises OSError."""
        paths = [file.path for file in self.data_files(wanted.key.topic) if file.may_have(wanted)]
        return read_by_offset(self.files.filesystem, paths, wanted, columns)

    # -- commits -----------------------------------------------------------------------------------

    def append(
        self, files: Sequence[WrittenFile], change: Callable[[ArchiveState], ArchiveState]
    ) -> None:
        """Add files, and change the state. Raises JobError, OSError."""
        actions: list[AddAction | RemoveAction] = [add_action(each) for each in files]
        self._commit(lambda properties: self._write(actions, properties), change)

    def replace(
        self,
        rows: PartitionRows,
        records: pa.Table | None,
        change: Callable[[ArchiveState], ArchiveState],
    ) -> None:
        """Replace the rows of a partition by others, and change the state.

        Raises JobError, OSError.
        """
        run_id = new_run_id()
        topic = rows.key.topic
        actions: list[AddAction | RemoveAction] = []
        added: list[WrittenFile] = []

        def change_files(state: ArchiveState) -> ArchiveState:
            actions[:] = [add_action(each) for each in added]
            files = [file for file in self.data_files(topic) if file.may_have(rows)]
            for old, new in write_without(self.files, files, rows, run_id):
                actions.append(remove_action(old.path, data_change=True))
                if new is not None:
                    actions.append(add_action(new))
            return change(state)

        with self.discarding(run_id, [topic]):
            if records is not None:
                added += write_records(self.files, topic, records, run_id)
            self._commit(lambda properties: self._write(actions, properties), change_files)

    @contextmanager
    def discarding(
        self, run_id: str, topics: Iterable[str], committed: Set[str] = frozenset()
    ) -> Iterator[None]:
        """Delete the files of a run that fails, unless they are in `committed` or in the table.

        Else a full disk would stay full. Those in an object store are left to vacuum: a commit of
        which no answer has come may still be made there.
        """
        try:
            yield
        except Exception:
            with suppress(JobError, OSError):
                self.refresh()
                for topic in topics:
                    kept = {file.path for file in self.data_files(topic)} | committed
                    for path in set(self.files.find(topic, run_id)) - kept:
                        self.files.delete(path)
            raise

    def add_columns(self, schema: pa.Schema) -> None:
        """Add the columns that the table lacks. Raises JobError if one has another type."""
        known = {field.name.lower(): field for field in self.delta.schema().fields}
        wanted = Schema.from_arrow(schema).fields
        for field in wanted:
            there = known.get(field.name.lower())
            if there is not None and (there.name, there.type) != (field.name, field.type):
                raise JobError(
                    f"{self.location} has a column {there.name} of type {type_name(there)}, and "
                    f"the schema has {field.name} of type {type_name(field)}"
                )
        missing = [field for field in wanted if field.name.lower() not in known]
        if missing:
            with self._committing("adding columns"):
                self.delta.alter.add_columns(missing)

    def merge(self, merged: Sequence[MergedFile]) -> list[MergedFile]:
        """Replace files by others with the same records. Raises JobError, OSError.

        Returns what was replaced: not what another process has replaced in the meantime.
        """
        actions: list[AddAction | RemoveAction] = []
        committed: list[MergedFile] = []

        def change(state: ArchiveState) -> ArchiveState:
            there = set(pa.table(self.delta.get_add_actions())["path"].to_pylist())
            committed[:] = [
                each for each in merged if there.issuperset(file.path for file in each.replaced)
            ]
            actions[:] = [add_action(each.written, data_change=False) for each in committed]
            actions.extend(remove_action(old.path) for each in committed for old in each.replaced)
            return state

        self._commit(lambda properties: self._write(actions, properties), change)
        return committed

    def _write(self, actions: list[AddAction | RemoveAction], properties: CommitProperties) -> None:
        self.delta.create_write_transaction(
            actions,
            mode="append",
            schema=self.delta.schema(),
            partition_by=list(PARTITION_COLUMNS),
            commit_properties=properties,
        )

    def vacuum(self) -> int:
        """Delete files that no version of the last week uses; return how many."""
        with self._committing("vacuum"):
            deleted = len(self.delta.vacuum(dry_run=False, full=True))
        self._delete_old_states()
        return deleted

    def _commit(
        self,
        act: Callable[[CommitProperties], None],
        change: Callable[[ArchiveState], ArchiveState],
    ) -> None:
        """Commit, and change the state. Raises JobError, OSError.

        If another process commits first, the change is applied to its state, and the commit is
        tried again, without limit. After other errors it is tried _MAX_ATTEMPTS times in all.
        """
        commit_id = uuid.uuid4().hex
        failures = 0
        while True:
            before, version = self._number, self.delta.version()
            state = change(self.state).encoded(commit_id, version)
            number = self._write_state(state)
            try:
                act(_properties(number))
            except (DeltaError, OSError) as error:
                self.refresh()
                if self._number == number:  # it was committed, and the answer was lost
                    break
                if self.delta.version() == version:  # nobody else has committed
                    failures += 1
                if failures == _MAX_ATTEMPTS:
                    raise JobError(f"cannot commit to {self.location}: {_reason(error)}") from error
                time.sleep(random.uniform(0, 2 * _RETRY_S))
            else:
                self.refresh()
                break
        self._sync_log()
        if before is not None and before != self._number:
            with suppress(OSError):  # the next vacuum deletes it
                self.files.delete(_state_path(before))

    @contextmanager
    def _committing(self, what: str) -> Iterator[None]:
        """Commit something that does not change the state."""
        try:
            with self._syncing_new_files():
                yield
        except (DeltaError, OSError) as error:
            raise JobError(f"{what} of {self.location}: {_reason(error)}") from error

    @contextmanager
    def _syncing_new_files(self) -> Iterator[None]:
        """fsync the files that deltalake writes inside the block: deltalake does not fsync them."""
        before = set(self.delta.file_uris())
        yield
        self.refresh()
        root = f"{self.location.uri.rstrip('/')}/"
        added = set(self.delta.file_uris()) - before
        self.files.sync(unquote(uri.removeprefix(root)) for uri in added)
        self._sync_log()

    def _sync_log(self) -> None:
        if (directory := self.location.directory) is not None:
            names = set(self.files.files.list_directory(directory / LOG_DIRECTORY))
            # A name with # is the temporary file of a commit that runs.
            new = {name for name in names - self._synced if "#" not in name}
            self.files.sync(f"{LOG_DIRECTORY}/{name}" for name in new)
            self._synced = names - {_LAST_CHECKPOINT}

    def refresh(self) -> None:
        """Read what other processes have committed. Raises JobError, OSError."""
        with self._reading():
            self.delta.update_incremental()
            self._number, self.state = self._read_state()
        self._refuse_changes()

    @contextmanager
    def _reading(self) -> Iterator[None]:
        try:
            yield
        except DeltaError as error:
            raise JobError(f"cannot read the archive {self.location}: {_reason(error)}") from error

    # -- other writers -----------------------------------------------------------------------------

    def _changes(self) -> list[Change]:
        """Return what other writers have changed since the state was written. Raises JobError."""
        if self._number is None:
            if self.delta.file_uris():
                raise JobError(
                    f"{self.location} has records, and nothing says which: another writer has made "
                    f"it, perhaps from an archive. Name another place"
                )
            return []
        own, until = self.state.table_version + 1, self.delta.version()  # own: the state's commit
        if own > until:
            raise JobError(
                f"{self.location} has version {until}, and its state is that of a later one: its "
                f"log is not the one that was archived to"
            )
        return find_changes(self.files.read, _APPLICATION, max(own, self._examined), until)

    def _refuse_changes(self) -> None:
        """Raise JobError if another writer has changed records since the state was written."""
        try:
            changes = self._changes()
        except UnknownChangesError as error:
            raise JobError(f"{self.location}: {error}. If none has, {_ACCEPT}") from error
        if changes:
            raise JobError(
                f"{changes[0]} of another writer has changed records of {self.location}: the "
                f"table no longer has what its state says. Undo that by "
                f'DeltaTable("{self.location}").restore({changes[0].version - 1}), or {_ACCEPT}'
            )
        self._examined = self.delta.version()

    def accept_changes(self) -> list[str]:
        """Record the changes of other writers in the state as accepted, and return them.

        Raises JobError, OSError.
        """
        try:
            accepted = [str(change) for change in self._changes()]
        except UnknownChangesError as error:
            accepted = [str(error)]
        self._examined = self.delta.version()
        if accepted:
            self.append([], lambda state: state.with_accepted(accepted))
        return accepted

    # -- the state ---------------------------------------------------------------------------------

    def _read_state(self) -> tuple[int | None, ArchiveState]:
        """Return the state that the newest version names; an empty one if nothing is archived."""
        for _ in range(_MAX_ATTEMPTS):
            number = self.delta.transaction_version(_APPLICATION)
            if number is None:
                return None, ArchiveState()
            path = _state_path(number)
            try:
                data = self.files.read(path)
            except FileNotFoundError:  # another process has committed and deleted it?
                self.delta.update_incremental()
                continue
            if _number_of(data) != number:
                raise JobError(f"{self.location}: {path} was changed or damaged; {_RESTORE_STATE}")
            return number, ArchiveState.decoded(data, path)
        raise JobError(
            f"{self.location} lacks {path}, which says what is archived; {_RESTORE_STATE}"
        )

    def _delete_old_states(self) -> None:
        """Delete what killed commits have left."""
        current = None if self._number is None else _state_path(self._number)
        before_ms = time.time_ns() // 1_000_000 - _OLD_STATE_MS
        for path, modified_ms in self.files.modified_ms(INTERNAL_DIRECTORY).items():
            if path != current and modified_ms < before_ms and "/state-" in path:
                self.files.delete(path)

    def _write_state(self, data: bytes) -> int:
        number = _number_of(data)
        self.files.write(_state_path(number), data)
        return number


def _reason(error: Exception) -> str:
    """Return the message in one line and without colors."""
    return " ".join(re.sub(r"\x1b\[\d+m|↳", " ", str(error)).split())


def _properties(number: int) -> CommitProperties:
    return CommitProperties(
        # The library's own attempts overlook that another tool has merged the same files.
        max_commit_retries=0,
        app_transactions=[Transaction(_APPLICATION, number)],
    )


def _number_of(state: bytes) -> int:
    return int.from_bytes(hashlib.sha256(state).digest()[:8]) >> 1


def _state_path(number: int) -> str:
    return f"{INTERNAL_DIRECTORY}/state-{number:016x}.json"
