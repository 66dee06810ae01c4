"""A disk that forgets what was not synced: the model of a power cut.

A file keeps the content it had at its last fsync; a directory the names it had at its own last
fsync (files made, renamed or removed since then are as they were before). That is all that POSIX
promises. Real file systems keep more, in no order one may count on: with a random generator,
`power_cut` lets each file and each directory survive as synced, as it was, or (a file) cut short.

Works on a real directory, below `root`, which exists when the object is made. With `cut_at` the
power goes before the operation of that number: whatever was under way ends with PowerGoneError.
"""

import os
import random
import shutil
from collections.abc import Sequence
from pathlib import Path

from odradek.protocol.compression import Buffer
from odradek.storage.files import Files, OpenFile


class PowerGoneError(Exception):
    """No disk error: nobody may catch it and go on."""


class _File:
    """What a name may stand for; `synced` is what a power cut leaves of it."""

    def __init__(self, synced: bytes = b"") -> None:
        self.synced = synced


class _Directory:
    """Names as they are, and as they were when the directory was synced last."""

    def __init__(self) -> None:
        self.names: dict[str, _Node] = {}
        self.synced: dict[str, _Node] = {}


_Node = _File | _Directory


class PowerCutFiles(Files):
    """Files whose `power_cut` takes back what was not synced."""

    def __init__(self, root: Path, cut_at: int | None = None) -> None:
        self.root = root
        self.operations = 0
        self.cut_at = cut_at
        self._tree = _learn(root)
        self._by_descriptor: dict[int, _File] = {}

    # --- the model

    def power_cut(self, chance: random.Random | None = None) -> None:
        """Leave on disk what was synced; with `chance`, some of the rest as well."""
        kept = _Kept(chance)
        content = {path: path.read_bytes() for path in self.root.rglob("*") if path.is_file()}
        live = {id(self._node(path)): data for path, data in content.items()}
        shutil.rmtree(self.root)
        self.root.mkdir()
        kept.write(self._tree, self.root, live)
        self._tree = _learn(self.root)
        self._by_descriptor.clear()

    def _operation(self) -> None:
        if self.operations == self.cut_at:
            raise PowerGoneError
        self.operations += 1

    def _node(self, path: Path) -> "_Node":
        node: _Node = self._tree
        for name in path.relative_to(self.root).parts:
            assert isinstance(node, _Directory)
            node = node.names[name]
        return node

    def _directory(self, path: Path) -> _Directory:
        node = self._node(path)
        assert isinstance(node, _Directory)
        return node

    def _knows(self, path: Path) -> bool:
        return path.is_relative_to(self.root)

    # --- the operations

    def open(self, path: Path, *, create: bool = False, read_only: bool = False) -> OpenFile:
        file = super().open(path, create=create, read_only=read_only)
        if self._knows(path):
            node = self._directory(path.parent).names.setdefault(path.name, _File())
            assert isinstance(node, _File)
            self._by_descriptor[file.fd] = node
        return file

    def _writev(self, file: OpenFile, buffers: Sequence[Buffer], position: int) -> int:
        self._operation()
        return super()._writev(file, buffers, position)

    def pwrite(self, file: OpenFile, data: Buffer, position: int) -> None:
        self._operation()
        super().pwrite(file, data, position)

    def truncate(self, file: OpenFile, size: int) -> None:
        self._operation()
        super().truncate(file, size)

    def preallocate(self, file: OpenFile, size: int) -> None:
        self._operation()
        super().preallocate(file, size)

    def fsync(self, file: OpenFile) -> None:
        self._operation()
        size = os.fstat(file.fd).st_size
        self._by_descriptor[file.fd].synced = os.pread(file.fd, size, 0)

    def fsync_directory(self, path: Path) -> None:
        self._operation()
        if self._knows(path):
            directory = self._directory(path)
            directory.synced = dict(directory.names)

    def rename(self, source: Path, target: Path) -> None:
        self._operation()
        super().rename(source, target)
        node = self._directory(source.parent).names.pop(source.name)
        self._directory(target.parent).names[target.name] = node

    def remove(self, path: Path) -> None:
        self._operation()
        super().remove(path)
        self._directory(path.parent).names.pop(path.name, None)

    def remove_tree(self, directory: Path) -> None:
        self._operation()
        super().remove_tree(directory)
        self._directory(directory.parent).names.pop(directory.name, None)

    def make_directory(self, path: Path) -> None:
        super().make_directory(path)
        if self._knows(path):
            node = self._tree
            for name in path.relative_to(self.root).parts:
                child = node.names.setdefault(name, _Directory())
                assert isinstance(child, _Directory)
                node = child


class _Kept:
    """Decides what of the unsynced survives."""

    def __init__(self, chance: random.Random | None) -> None:
        self._chance = chance

    def write(self, directory: _Directory, path: Path, live: dict[int, bytes]) -> None:
        """Make on disk what the power cut left of a directory."""
        names = directory.synced
        if self._chance is not None and self._chance.random() < 0.5:
            names = directory.names
        for name, node in names.items():
            if isinstance(node, _Directory):
                (path / name).mkdir()
                self.write(node, path / name, live)
            else:
                (path / name).write_bytes(self._content(node, live))

    def _content(self, file: _File, live: dict[int, bytes]) -> bytes:
        data = live.get(id(file), file.synced)
        if self._chance is None or data == file.synced:
            return file.synced
        kind = self._chance.randrange(4)
        cut = self._chance.randint(0, len(data))
        if kind == 0:
            return file.synced
        if kind == 1:
            return data
        if kind == 2:
            # Only what is behind the synced bytes may be missing, where the file has grown.
            return data[: max(cut, len(file.synced))] if data.startswith(file.synced) else data
        # The length got to the disk, the bytes did not: the famous zeros at the end.
        grown = max(0, len(data) - len(file.synced))
        return data[: len(file.synced)] + bytes(grown) if data.startswith(file.synced) else data


def _learn(root: Path) -> _Directory:
    """What is on the disk at the beginning is synced."""
    directory = _Directory()
    for path in root.iterdir():
        directory.names[path.name] = _learn(path) if path.is_dir() else _File(path.read_bytes())
    directory.synced = dict(directory.names)
    return directory
