"""Finds what other writers have changed in the table, by the entries of its log.

The state says which records the table has. A commit of another writer that adds or removes records
makes it wrong: DELETE, UPDATE, MERGE, overwriting, RESTORE. Delta's protocol marks the files of
such a commit with `dataChange`. OPTIMIZE, VACUUM and commits that add columns have none of them.
The archive's own commits set its application transaction.

A change is undone by a RESTORE to the version before it: that adds the files which the change has
removed, and removes those that it has added.
"""

from collections.abc import Callable
from typing import NamedTuple

import msgspec

from odradek.pipeline.jobs import JobError

LOG_DIRECTORY = "_delta_log"
_FileKey = tuple[str, str]


class UnknownChangesError(JobError):
    """An entry of the table's log was deleted, so nobody knows what it has changed."""


class Change(NamedTuple):
    """A commit of another writer that has changed records."""

    version: int
    operation: str

    def __str__(self) -> str:
        return f"version {self.version} ({self.operation})"


class _Vector(msgspec.Struct, rename="camel"):
    storage_type: str = ""
    path_or_inline_dv: str = msgspec.field(default="", name="pathOrInlineDv")
    offset: int = 0


class _File(msgspec.Struct, rename="camel"):
    path: str
    data_change: bool = True
    deletion_vector: _Vector | None = None

    @property
    def key(self) -> _FileKey:
        """What identifies the rows of a file: its path, and which of its rows are deleted."""
        return self.path, repr(self.deletion_vector)


class _Info(msgspec.Struct):
    operation: str = "unknown operation"


class _Transaction(msgspec.Struct, rename="camel"):
    app_id: str


class _Entry(msgspec.Struct, rename="camel"):
    """A line of a commit. One field is set, or none if it is of another kind."""

    commit_info: _Info | None = None
    txn: _Transaction | None = None
    add: _File | None = None
    remove: _File | None = None


_DECODER = msgspec.json.Decoder(_Entry)


def find_changes(
    read: Callable[[str], bytes], application: str, after: int, until: int
) -> list[Change]:
    """Return the changes of versions `after` + 1 to `until` that were not undone, oldest first.

    `read` returns a file of the table. Raises UnknownChangesError, JobError, OSError.
    """
    added: dict[_FileKey, Change] = {}
    removed: dict[_FileKey, Change] = {}
    for version in range(after + 1, until + 1):
        entries = _entries(read, version)
        if any(each.txn is not None and each.txn.app_id == application for each in entries):
            continue
        infos = [each.commit_info for each in entries if each.commit_info is not None]
        change = Change(version, (infos or [_Info()])[0].operation)
        for each in entries:
            for file, here, there in ((each.remove, removed, added), (each.add, added, removed)):
                if file is not None and file.data_change and not there.pop(file.key, None):
                    here[file.key] = change
    return sorted({*added.values(), *removed.values()})


def _entries(read: Callable[[str], bytes], version: int) -> list[_Entry]:
    path = f"{LOG_DIRECTORY}/{version:020}.json"
    try:
        return _DECODER.decode_lines(read(path))
    except FileNotFoundError:
        raise UnknownChangesError(
            f"{path} was deleted, so whether another writer has changed records in version "
            f"{version} is not known"
        ) from None
    except msgspec.DecodeError as error:
        raise JobError(f"{path} is not an entry of the table's log: {error}") from error
