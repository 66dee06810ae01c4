"""Says where an archive is, and writes its files: in a directory, or in an object store.

Files of a directory are synced, and so are the names of its new directories: a commit must not
survive a power cut that its files do not survive.
"""

import io
import secrets
import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import pyarrow as pa
import pyarrow.fs as pafs
from deltalake.fs import DeltaStorageHandler

from odradek.pipeline.jobs import JobError
from odradek.storage.files import Files

INTERNAL_DIRECTORY = "_odradek"  # readers and the table's vacuum ignore names that begin so


def topic_directory(topic: str) -> str:
    """Return the path relative to the archive. Characters of topic names need no escaping."""
    return f"topic={topic}"


@dataclass(frozen=True, slots=True)
class ArchiveLocation:
    """`uri` is an absolute path or a URL like s3://bucket/name; `options` are the store's."""

    uri: str
    options: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def named(cls, name: str, options: Mapping[str, str]) -> Self:
        """Return the place of a path, a file: URI, or the URL of an object store.

        Raises JobError if there are options, and no object store.
        """
        scheme, separator, rest = name.partition("://")
        if separator and scheme != "file":
            return cls(name.rstrip("/"), options)
        if options:
            raise JobError(f"{name} is no object store, so it has no options")
        path = f"/{rest.lstrip('/')}" if separator else name.removeprefix("file:")
        return cls(str(Path(path).absolute()))

    @property
    def directory(self) -> Path | None:
        """The local directory, or None."""
        return None if "://" in self.uri else Path(self.uri)

    def filesystem(self) -> pafs.FileSystem:
        """Return a file system in which paths are relative to the archive."""
        if self.directory is not None:
            return pafs.SubTreeFileSystem(self.uri, pafs.LocalFileSystem())
        return pafs.PyFileSystem(_ObjectStore(self.uri, dict(self.options)))

    def __str__(self) -> str:
        return self.uri


class _ObjectStore(DeltaStorageHandler):
    """Gives bytes to streams of deltalake, which take nothing else; pyarrow writes buffers."""

    def open_output_stream(
        self, path: str, metadata: dict[str, str] | None = None
    ) -> pa.PythonFile:
        return pa.PythonFile(_BytesOutput(self._handler.open_output_stream(path, metadata)), "wb")


class _BytesOutput(io.RawIOBase):
    def __init__(self, stream: Any) -> None:  # a class that deltalake does not name
        self._stream = stream

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:  # any object with a buffer
        return int(self._stream.write(bytes(data)) or 0)

    def close(self) -> None:
        if not self.closed:
            self._stream.close()
        super().close()


def new_run_id() -> str:
    """Return an id that no other run has. It is in the names of the run's files."""
    return uuid.uuid4().hex


def unique_name(run_id: str) -> str:
    """Return a part of a file's name that no other file has."""
    return f"{run_id}-{secrets.token_hex(8)}"


class ArchiveFiles:
    """The files of an archive, by their path in it. `files` is used where it is a directory."""

    def __init__(self, location: ArchiveLocation, files: Files) -> None:
        self.location = location
        self.files = files
        self.filesystem = location.filesystem()

    def open_output(self, path: str) -> pa.NativeFile:
        """Open a new file, which `sync` completes after it is closed. Raises OSError."""
        if (directory := self.location.directory) is not None:
            self.files.make_directory((directory / path).parent)
        return self.filesystem.open_output_stream(path)

    def sync(self, paths: Iterable[str]) -> None:
        """Sync closed files and the directories that lead to them. Raises OSError."""
        root = self.location.directory
        if root is None:
            return
        directories = set()
        for path in {root / path for path in paths}:
            self.files.fsync(self.files.open(path, read_only=True))
            directories |= {each for each in path.parents if each.is_relative_to(root)}
        for each in sorted(directories):
            self.files.fsync_directory(each)

    def write(self, path: str, data: bytes) -> None:
        """Write a small file. Raises OSError."""
        with self.open_output(path) as output:
            output.write(data)
        self.sync([path])

    def read(self, path: str) -> bytes:
        """Return a file's content. Raises FileNotFoundError, OSError."""
        with self.filesystem.open_input_file(path) as file:
            return bytes(file.read())

    def delete(self, path: str) -> None:
        """Delete a file. Raises OSError."""
        if (directory := self.location.directory) is not None:
            self.files.remove(directory / path)
        else:
            self.filesystem.delete_file(path)

    def find(self, topic: str, run_id: str) -> list[str]:
        """Return the files of a topic that a run has written in a directory. Raises OSError."""
        if (root := self.location.directory) is None:
            return []
        found = (root / topic_directory(topic)).glob(f"*/*{run_id}*")
        return [str(path.relative_to(root)) for path in found]

    def modified_ms(self, directory: str) -> dict[str, int]:
        """Return the paths of the files in a directory, with the times of their last change."""
        listed = self.filesystem.get_file_info(pafs.FileSelector(directory, allow_not_found=True))
        return {each.path: each.mtime_ns // 1_000_000 for each in listed if each.is_file}
