"""A disk on which one call fails: the n-th of those that may fail in that way.

Which error a call may have is in `MAY_FAIL`: only those that open a file want a descriptor, only
those that may want a block can find none. All others, and whatever follows, work.
"""

import errno
import os
from collections import Counter
from collections.abc import Callable
from enum import Enum
from itertools import count
from pathlib import Path
from typing import Any

from odradek.storage.files import FileLock, OpenFile

from .journal import JournalledFiles, Lost

READS = (
    "pread",
    "pread_cached",
    "read",
    "list_directory",
    "exists",
    "is_directory",
    "size",
    "modified_ms",
    "free_bytes",
)
WRITES = ("_writev", "pwrite")
GROWS = (*WRITES, "open", "truncate", "preallocate", "rename", "make_directory", "fsync")
OPENS = ("open", "read", "list_directory", "fsync_directory", "remove_tree", "free_descriptors")
ALL = tuple(
    dict.fromkeys(
        (*READS, *GROWS, *OPENS, "remove", "set_modified_ms", "make_private", "make_read_only")
    )
)


class Fault(Enum):
    """What happens at one call."""

    EIO = "an I/O error"
    ENOSPC = "no space"
    EDQUOT = "no space in the quota"
    EMFILE = "no descriptor"
    SHORT = "a part is written, and the call says so"
    TORN = "a part is written, then there is no space"
    LOST = "an fsync fails, the pages are dropped, and the next succeeds"
    LOST_SIZE = "the same, and the size is lost, too"
    DEAD = "I/O errors from then on, in this data directory"


MAY_FAIL = {
    Fault.EIO: ALL,
    Fault.ENOSPC: GROWS,
    Fault.EDQUOT: GROWS,
    Fault.EMFILE: OPENS,
    Fault.SHORT: ("_writev",),  # `pwrite` goes on by itself
    Fault.TORN: WRITES,
    Fault.LOST: ("fsync",),
    Fault.LOST_SIZE: ("fsync",),
    Fault.DEAD: ALL,
}
CODES = {
    Fault.EIO: errno.EIO,
    Fault.ENOSPC: errno.ENOSPC,
    Fault.EDQUOT: errno.EDQUOT,
    Fault.EMFILE: errno.EMFILE,
    Fault.TORN: errno.ENOSPC,
    Fault.LOST: errno.EIO,
    Fault.LOST_SIZE: errno.EIO,
    Fault.DEAD: errno.EIO,
}


class FailingFiles(JournalledFiles):
    """Fails at call number `at` of those that may have the fault. `calls` counts them by name.

    `failed`: the call, and the path, that has failed.
    """

    def __init__(self, root: Path, fault: Fault, at: int) -> None:
        super().__init__(root)
        self.calls = Counter[str]()
        self.failed: tuple[str, Path] | None = None
        self._fault = fault
        self._at = at
        self._call_numbers = count()
        self._locks: list[FileLock] = []
        for name in MAY_FAIL[fault]:
            setattr(self, name, self._counted(name, getattr(self, name)))

    def lock(self, path: Path) -> FileLock:
        lock = super().lock(path)
        self._locks.append(lock)
        return lock

    def end_process(self) -> None:
        """Release what the end of a process releases."""
        for lock in self._locks:
            lock.release(as_found=True)

    @property
    def failed_directory(self) -> Path | None:
        """The data directory in which the call has failed; None if it was in none."""
        return None if self.failed is None else self._directory_of(self.failed[1])

    def _directory_of(self, path: Path) -> Path | None:
        for each in (path, *path.parents):
            if each.parent == self.root:
                return each
        return None

    def _counted(self, name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        def counted(*args: Any, **kwargs: Any) -> Any:
            path = _path(*args)
            self.calls[name] += 1
            if next(self._call_numbers) == self._at:
                self.failed = name, path
                return self._fail(name, call, *args)
            if (
                self._fault is Fault.DEAD
                and self.failed is not None
                and self._directory_of(path) == self.failed_directory
            ):
                raise OSError(errno.EIO, os.strerror(errno.EIO), str(path))
            return call(*args, **kwargs)

        return counted

    def _fail(self, name: str, call: Callable[..., Any], *args: Any) -> Any:
        if self._fault in (Fault.SHORT, Fault.TORN):
            written = self._write_a_part(name, *args)
            if self._fault is Fault.SHORT:
                return written
        if self._fault in (Fault.LOST, Fault.LOST_SIZE):
            self._add(Lost(self._file(args[0]), keeps_size=self._fault is Fault.LOST))
        code = CODES[self._fault]
        raise OSError(code, os.strerror(code), str(_path(*args)))

    def _write_a_part(self, name: str, file: OpenFile, data: Any, position: int) -> int:
        content = bytes(data) if name == "pwrite" else b"".join(data)
        part = content[: (len(content) + 1) // 2]
        JournalledFiles.pwrite(self, file, part, position)
        return len(part)


def _path(subject: OpenFile | Path | None = None, *_: object) -> Path:
    if subject is None:
        return Path()
    return subject.path if isinstance(subject, OpenFile) else subject
