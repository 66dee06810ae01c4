"""A file system of a process that dies: after so many writes nothing is done any more."""

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from odradek.protocol.compression import Buffer
from odradek.storage.files import Files, OpenFile


class CrashedError(BaseException):
    """The process is gone. Not an Exception: no handler may go on after it."""


CHANGES = (
    "append",
    "pwrite",
    "truncate",
    "preallocate",
    "copy_range",
    "fsync",
    "rename",
    "remove",
    "set_modified_ms",
    "fsync_directory",
)


class QuickFiles(Files):
    """Syncs nothing: what a killed process wrote is there without."""

    def fsync(self, file: OpenFile) -> None:
        pass

    def fsync_directory(self, path: Path) -> None:
        pass


class CrashingFiles(QuickFiles):
    """Dies instead of its change number `limit` (from 0 on); `changes` counts them, and
    `kinds` has their names.

    With `tears`, half the bytes of an append are written before.
    """

    def __init__(self, limit: int, *, tears: bool = False) -> None:
        self.limit = limit
        self.tears = tears
        self.changes = 0
        self.kinds: list[str] = []
        for name in CHANGES:
            setattr(self, name, self._counted(getattr(super(), name)))

    def _counted(self, change: Callable[..., Any]) -> Callable[..., Any]:
        def counted(*arguments: Any, **options: Any) -> Any:
            if self.changes >= self.limit:
                if self.tears and change.__name__ == "append":
                    _tear(*arguments)
                raise CrashedError(f"before change {self.limit}: {change.__name__}{arguments}")
            self.changes += 1
            self.kinds.append(change.__name__)
            return change(*arguments, **options)

        return counted


def _tear(file: OpenFile, buffers: Sequence[Buffer]) -> None:
    data = b"".join(buffers)
    os.pwrite(file.fd, data[: len(data) // 2], file.append_position)
