"""A file system of a process that dies: after so many writes nothing is done any more."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from odradek.storage.files import Files, OpenFile


class CrashedError(Exception):
    """The process is gone. No OSError: nobody may think that it can go on."""


CHANGES = (
    "append",
    "pwrite",
    "truncate",
    "preallocate",
    "copy_range",
    "fsync",
    "rename",
    "link",
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
    """Dies instead of its change number `limit` (from 0 on); `changes` counts them."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.changes = 0
        for name in CHANGES:
            setattr(self, name, self._counted(getattr(super(), name)))

    def _counted(self, change: Callable[..., Any]) -> Callable[..., Any]:
        def counted(*arguments: Any, **options: Any) -> Any:
            if self.changes >= self.limit:
                raise CrashedError(f"before change {self.limit}: {change.__name__}{arguments}")
            self.changes += 1
            return change(*arguments, **options)

        return counted
