"""A disk that fails: at the n-th operation, or from then on, or for one kind of operation.

What changes a disk counts as an operation: writes (before a byte, and half way), truncations, new
files, fsyncs, renames, removals. Reads count only where they are asked for. A count run tells how
many operations a piece of work takes (`count`); then each of them is made to fail in turn.
"""

import errno
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from odradek.protocol.compression import Buffer
from odradek.storage.files import Files, OpenFile

Wanted = Callable[[str, Path], bool]


class FaultyFiles(Files):
    """Fails as it is told; otherwise it is a file system like any, but for syncs, which are free.

    `half`: of a write that fails, half the bytes get to the disk. `short_writes`: every write
    stops after seven bytes and has to be continued.
    """

    def __init__(self) -> None:
        self.seen: list[tuple[str, Path]] = []
        self.error = errno.EIO
        self.half = False
        self.short_writes = False
        self._wanted: Wanted = lambda kind, path: False
        self._left = 0
        self._lasting = False

    # --- what fails

    def fail(
        self, wanted: Wanted, *, at: int = 0, error: int = errno.EIO, lasting: bool = True
    ) -> None:
        """Let operations fail for which `wanted(kind, path)` holds, from the one numbered `at` on.

        Not `lasting`: only that one.
        """
        self._wanted, self._left, self.error, self._lasting = wanted, at, error, lasting

    def heal(self) -> None:
        """Nothing fails any more."""
        self._wanted = lambda kind, path: False

    @contextmanager
    def counting(self) -> Iterator[list[tuple[str, Path]]]:
        """The operations that happen inside the `with`."""
        self.seen = []
        yield self.seen

    def _operation(self, kind: str, path: Path, *, halfway: Callable[[], object] = int) -> None:
        self.seen.append((kind, path))
        if not self._wanted(kind, path):
            return
        self._left -= 1
        if self._left >= 0 or (self._left < -1 and not self._lasting):
            return
        if self.half:
            halfway()
        raise OSError(self.error, os.strerror(self.error), str(path))

    # --- the operations

    def open(self, path: Path, *, create: bool = False, read_only: bool = False) -> OpenFile:
        if create and not path.exists():
            self._operation("create", path)
        return super().open(path, create=create, read_only=read_only)

    def pread(self, file: OpenFile, size: int, position: int) -> bytes:
        if self._wanted("read", file.path):
            self._operation("read", file.path)
        return super().pread(file, size, position)

    def read(self, path: Path) -> bytes:
        if self._wanted("read", path):
            self._operation("read", path)
        return super().read(path)

    def exists(self, path: Path) -> bool:
        if self._wanted("read", path):
            self._operation("read", path)
        return super().exists(path)

    def list_directory(self, directory: Path) -> list[str]:
        if self._wanted("read", directory):
            self._operation("read", directory)
        return super().list_directory(directory)

    def _writev(self, file: OpenFile, buffers: Sequence[Buffer], position: int) -> int:
        data = b"".join(buffers)
        half = data[: len(data) // 2]
        self._operation("write", file.path, halfway=lambda: os.pwrite(file.fd, half, position))
        return os.pwrite(file.fd, data[:7] if self.short_writes else data, position)

    def pwrite(self, file: OpenFile, data: Buffer, position: int) -> None:
        half = bytes(data[: len(data) // 2])
        self._operation("pwrite", file.path, halfway=lambda: os.pwrite(file.fd, half, position))
        super().pwrite(file, data, position)

    def truncate(self, file: OpenFile, size: int) -> None:
        self._operation("truncate", file.path)
        super().truncate(file, size)

    def preallocate(self, file: OpenFile, size: int) -> None:
        self._operation("preallocate", file.path)
        super().preallocate(file, size)

    def fsync(self, file: OpenFile) -> None:
        self._operation("fsync", file.path)

    def fsync_directory(self, path: Path) -> None:
        self._operation("fsync_directory", path)

    def rename(self, source: Path, target: Path) -> None:
        self._operation("rename", source)
        super().rename(source, target)

    def remove(self, path: Path) -> None:
        if path.exists():
            self._operation("remove", path)
        super().remove(path)

    def remove_tree(self, directory: Path) -> None:
        self._operation("remove_tree", directory)
        super().remove_tree(directory)

    def make_directory(self, path: Path) -> None:
        if not path.exists():
            self._operation("make_directory", path)
        super().make_directory(path)


def anything(kind: str, path: Path) -> bool:  # one of the `wanted` functions
    """Every operation that changes the disk."""
    return kind != "read"


def below(directory: Path, *kinds: str) -> Wanted:
    """Operations on what lies in a directory; of these kinds, or of all, reads too."""
    return lambda kind, path: path.is_relative_to(directory) and (not kinds or kind in kinds)
