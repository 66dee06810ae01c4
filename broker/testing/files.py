"""The file access of a broker in a test: syncs nothing, and its disk can be filled."""

import errno
from collections.abc import Sequence
from pathlib import Path

from odradek.protocol.compression import Buffer
from odradek.storage.files import Files, OpenFile


class DisposableFiles(Files):
    """Files without fsync: what a killed process has written is in the page cache.

    While `is_full`, writes fail as on a full disk, and no space is free. The cleaner's process has
    files of its own, for which this does not hold.
    """

    def __init__(self) -> None:
        self.is_full = False

    def fsync(self, file: OpenFile) -> None:
        pass

    def fsync_directory(self, path: Path) -> None:
        pass

    def free_bytes(self, directory: Path) -> int:
        return 0 if self.is_full else super().free_bytes(directory)

    def _writev(self, file: OpenFile, buffers: Sequence[Buffer], position: int) -> int:
        self._check_space(file)
        return super()._writev(file, buffers, position)

    def pwrite(self, file: OpenFile, data: Buffer, position: int) -> None:
        self._check_space(file)
        super().pwrite(file, data, position)

    def _check_space(self, file: OpenFile) -> None:
        if self.is_full:
            raise OSError(errno.ENOSPC, "No space left on device", str(file.path))
