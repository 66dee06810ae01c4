"""What a process does to its disk, as a list: from that, any power cut can be replayed.

Files and directories are numbers, because a name may stand for different ones, and a file may have
several names or none. Nothing is synced really: the journal only says what was.
"""

import os
from collections.abc import Callable, Sequence
from itertools import count
from pathlib import Path
from typing import NamedTuple

from odradek.protocol.compression import Buffer
from odradek.storage.files import Files, OpenFile

ROOT = 0


class Write(NamedTuple):
    """Bytes are written to a file."""

    file: int
    position: int
    data: bytes


class Resize(NamedTuple):
    """A file is truncated, or grows by a hole."""

    file: int
    size: int


class Name(NamedTuple):
    """A name in a directory gets a file or a directory, or is removed (None)."""

    directory: int
    name: str
    node: int | None
    is_directory: bool = False


class Names(NamedTuple):
    """Names that change together: a rename."""

    changes: tuple[Name, ...]


class Sync(NamedTuple):
    """All before this that was written to a file is on the disk."""

    file: int


class Lost(NamedTuple):
    """What was written to a file since it was synced is not on the disk, and never will be.

    `keeps_size`: its size is, and the bytes are zeros.
    """

    file: int
    keeps_size: bool


class SyncNames(NamedTuple):
    """All before this that was done to the names in a directory is on the disk."""

    directory: int


class Mark(NamedTuple):
    """Something that the process has told others: from here on it must be kept."""

    what: object


Entry = Write | Resize | Names | Sync | Lost | SyncNames | Mark


class JournalledFiles(Files):
    """Files below `root`; what is done to them is in `journal`.

    It begins with what is there already, which counts as synced.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self.journal: list[Entry] = []
        self.on_entry: Callable[[], object] | None = None
        self._numbers = count(ROOT + 1)
        self._of_path: dict[Path, int] = {root: ROOT}
        self._of_descriptor: dict[int, int] = {}
        for path in sorted(root.rglob("*")):
            self._learn(path)
        directories = [path for path in self._of_path if path.is_dir()]
        self.journal += [SyncNames(self._of_path[path]) for path in directories]
        self.first = len(self.journal)
        """How many entries are about what was there."""

    def _learn(self, path: Path) -> None:
        is_directory = path.is_dir()
        name = self._named(path, is_directory=is_directory)
        self._add(Names((name,)))
        if not is_directory:
            assert name.node is not None
            content = path.read_bytes()
            data = content.rstrip(b"\0")
            self._add(Write(name.node, 0, data))
            self._add(Resize(name.node, len(content)))
            self._add(Sync(name.node))

    def mark(self, what: object) -> None:
        """Something has been told to others."""
        self.journal.append(Mark(what))

    def _file(self, file: OpenFile) -> int:
        return self._of_descriptor[file.fd]

    def _add(self, entry: Entry) -> None:
        self.journal.append(entry)
        if self.on_entry is not None:
            self.on_entry()

    def _named(self, path: Path, *, is_directory: bool = False) -> Name:
        """Give a path to a new file or directory."""
        number = self._of_path[path] = next(self._numbers)
        return Name(self._of_path[path.parent], path.name, number, is_directory)

    def _unnamed(self, path: Path) -> Name:
        del self._of_path[path]
        return Name(self._of_path[path.parent], path.name, None)

    def _below(self, directory: Path) -> list[Path]:
        """The paths in a directory. Texts are compared: pathlib takes half of a life's time."""
        start = f"{directory}{os.sep}"
        return [path for path in self._of_path if str(path).startswith(start)]

    # -- content -----------------------------------------------------------------------------------

    def open(self, path: Path, *, create: bool = False, read_only: bool = False) -> OpenFile:
        file = super().open(path, create=create, read_only=read_only)
        if path.is_relative_to(self.root):
            if path not in self._of_path:
                self._add(Names((self._named(path),)))
            self._of_descriptor[file.fd] = self._of_path[path]
        return file

    def _writev(self, file: OpenFile, buffers: Sequence[Buffer], position: int) -> int:
        written = super()._writev(file, buffers, position)
        self._add(Write(self._file(file), position, b"".join(buffers)[:written]))
        return written

    def pwrite(self, file: OpenFile, data: Buffer, position: int) -> None:
        super().pwrite(file, data, position)
        self._add(Write(self._file(file), position, bytes(data)))

    def truncate(self, file: OpenFile, size: int) -> None:
        super().truncate(file, size)
        self._add(Resize(self._file(file), size))

    def preallocate(self, file: OpenFile, size: int) -> None:
        super().preallocate(file, size)
        self._add(Resize(self._file(file), size))

    def copy_range(self, source: OpenFile, target: OpenFile, size: int, position: int) -> None:
        data = self.pread_exact(source, size, position)
        self.pwrite(target, data, position)

    def fsync(self, file: OpenFile) -> None:
        self._add(Sync(self._file(file)))

    # -- names -------------------------------------------------------------------------------------

    def rename(self, source: Path, target: Path) -> None:
        super().rename(source, target)
        is_directory = target.is_dir()
        number = self._of_path[source]
        removed = self._unnamed(source)
        if is_directory:
            for path in self._below(source):
                self._of_path[target / path.relative_to(source)] = self._of_path.pop(path)
        self._of_path[target] = number
        directory = self._of_path[target.parent]
        self._add(Names((removed, Name(directory, target.name, number, is_directory))))

    def remove(self, path: Path) -> None:
        is_there = path.exists()
        super().remove(path)
        if is_there:
            self._add(Names((self._unnamed(path),)))

    def remove_tree(self, directory: Path) -> None:
        is_there = directory.exists()
        super().remove_tree(directory)
        if is_there:
            below = [directory, *self._below(directory)]
            for path in sorted(below, key=lambda each: len(each.parts), reverse=True):
                self._add(Names((self._unnamed(path),)))

    def make_directory(self, path: Path) -> None:
        super().make_directory(path)
        for each in [*reversed(path.parents), path]:
            if each.is_relative_to(self.root) and each not in self._of_path:
                self._add(Names((self._named(each, is_directory=True),)))

    def fsync_directory(self, path: Path) -> None:
        if path.is_relative_to(self.root):
            if path not in self._of_path:  # it was renamed meanwhile, as the log that it was
                raise FileNotFoundError(path)
            self._add(SyncNames(self._of_path[path]))
