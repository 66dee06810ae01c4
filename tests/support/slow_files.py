"""A slow disk, and a list of the calls that the event loop makes although they may wait for it.

What may wait for a device: fsync; a change of names or lengths (create, rename, unlink, mkdir,
ftruncate, chmod); and whatever asks for something that is not in memory: a file that nobody has
opened, listed or asked for since `chill`, and pages that nobody has read or written since then.
Appends and small writes end in the page cache.

Each kind of call is slow once after `chill`, on whatever thread it comes first; those in `allowed`
are not on the loop. They are all noted.
"""

import os
import re
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from pathlib import Path
from threading import get_ident
from typing import TypeVar

from odradek.protocol.compression import Buffer
from odradek.storage.filenames import parse_partition_directory
from odradek.storage.files import Files, OpenFile

T = TypeVar("T")

PAGE_BYTES = 4096
_HEX_ID = re.compile(r"\.[0-9a-f]{32}")
_SEGMENT = re.compile(r"\d{20}(-\d{10})?")


class SlowFiles(Files):
    """Quick until `chill`. To be made on the thread of the loop."""

    def __init__(self, delay_seconds: float) -> None:
        self.allowed: Collection[str] = ()
        self.on_loop: Counter[str] = Counter()  # calls that may wait, like "rename .log"
        self._delay_seconds = delay_seconds
        self._loop_thread = get_ident()
        self._is_cold = False
        self._slow: set[str] = set()  # kinds of calls that are still to be slow
        self._quick: set[str] = set()
        self._names: set[Path] = set()  # of which the system knows without looking
        self._pages: set[tuple[int, int]] = set()

    def chill(self, allowed: Collection[str]) -> None:
        """From now on nothing is in memory, and the disk is slow."""
        self._names.clear()
        self._pages.clear()
        self.on_loop.clear()
        self._quick.clear()
        self.allowed = allowed
        self._is_cold = True

    def thaw(self) -> None:
        """The disk is quick again."""
        self._is_cold = False

    def _may_wait(self, kind: str, path: Path) -> None:
        if not self._is_cold:
            return
        call = f"{kind} {what_lies_at(path)}"
        if get_ident() == self._loop_thread:
            self.on_loop[call] += 1
            if call in self.allowed:
                return
        if kind not in self._quick:
            self._quick.add(kind)
            time.sleep(self._delay_seconds)

    def _asks_for(self, kind: str, path: Path) -> None:
        if path not in self._names:
            self._names.add(path)
            self._may_wait(kind, path)

    def _changes(self, kind: str, path: Path, *more: Path) -> None:
        self._names.update((path, *more))
        self._may_wait(kind, path)

    # --- open files

    def open(self, path: Path, *, create: bool = False, read_only: bool = False) -> OpenFile:
        self._check_may_wait_to_open(path, create=create, read_only=read_only)
        if create and not path.exists():
            self._changes("create", path)
        else:
            self._asks_for("open", path)
        with self.allow_waiting():
            return super().open(path, create=create, read_only=read_only)

    def _check_may_wait_to_open(self, path: Path, *, create: bool, read_only: bool) -> None:
        if not create:
            self._check_may_wait("open", path, lambda: self.open(path, read_only=read_only))

    def pread(self, file: OpenFile, size: int, position: int) -> bytes:
        reads = self.nonblocking
        if reads is None or reads.may_wait((file, size, position)):
            self._read_pages("pread", file, size, position)
        return super().pread(file, size, position)

    def pread_cached(self, file: OpenFile, size: int, position: int) -> bytes | None:
        if self._is_cold and not self._pages_of(file, size, position) <= self._pages:
            return None
        return os.pread(file.fd, size, position)

    def is_cached(self, file: OpenFile, size: int, position: int) -> bool:
        return not self._is_cold or self._pages_of(file, size, position) <= self._pages

    def read_ahead(self, file: OpenFile, size: int, position: int) -> None:
        self._read_pages("read", file, size, position)
        super().read_ahead(file, size, position)

    def _read_pages(self, kind: str, file: OpenFile, size: int, position: int) -> None:
        pages = self._pages_of(file, size, position)
        if not pages <= self._pages:
            self._pages |= pages
            self._may_wait(kind, file.path)

    def _pages_of(self, file: OpenFile, size: int, position: int) -> set[tuple[int, int]]:
        status = os.fstat(file.fd)
        end = min(position + size, status.st_size)
        return {
            (status.st_ino, page) for page in range(position // PAGE_BYTES, -(-end // PAGE_BYTES))
        }

    def append(self, file: OpenFile, buffers: Sequence[Buffer]) -> int:
        start = file.append_position
        size = super().append(file, buffers)
        self._pages |= self._pages_of(file, size, start)
        return size

    def pwrite(self, file: OpenFile, data: Buffer, position: int) -> None:
        super().pwrite(file, data, position)
        self._pages |= self._pages_of(file, len(data), position)

    def truncate(self, file: OpenFile, size: int) -> None:
        self._changes("ftruncate", file.path)
        super().truncate(file, size)

    def preallocate(self, file: OpenFile, size: int) -> None:
        self._changes("ftruncate", file.path)
        super().preallocate(file, size)

    def copy_range(self, source: OpenFile, target: OpenFile, size: int, position: int) -> None:
        self._may_wait("copy", source.path)
        super().copy_range(source, target, size, position)

    def fsync(self, file: OpenFile) -> None:
        self._may_wait("fsync", file.path)

    # --- names

    def read(self, path: Path) -> bytes:
        return self._asked("read", path, super().read)

    def rename(self, source: Path, target: Path) -> None:
        self._changes("rename", source, target)
        below = [name for name in self._names if name.is_relative_to(source)]
        self._names.update(target / name.relative_to(source) for name in below)
        super().rename(source, target)

    def remove(self, path: Path) -> None:
        self._changes("unlink", path)
        super().remove(path)

    def remove_tree(self, directory: Path) -> None:
        self._changes("unlink", directory)
        super().remove_tree(directory)

    def make_directory(self, path: Path) -> None:
        self._changes("mkdir", path)
        super().make_directory(path)

    def make_read_only(self, path: Path) -> None:
        self._changes("chmod", path)
        super().make_read_only(path)

    def fsync_directory(self, path: Path) -> None:
        self._may_wait("fsync", path)

    def list_directory(self, directory: Path) -> list[str]:
        return self._asked("list_directory", directory, super().list_directory)

    def exists(self, path: Path) -> bool:
        return self._asked("exists", path, super().exists)

    def is_directory(self, path: Path) -> bool:
        self._asks_for("stat", path)
        return super().is_directory(path)

    def size(self, path: Path) -> int:
        return self._asked("size", path, super().size)

    def modified_ms(self, path: Path) -> int:
        return self._asked("modified_ms", path, super().modified_ms)

    def free_bytes(self, directory: Path) -> int:
        self._may_wait("statfs", directory)
        return super().free_bytes(directory)

    def total_bytes(self, directory: Path) -> int:
        self._may_wait("statfs", directory)
        return super().total_bytes(directory)

    def _asked(self, name: str, path: Path, ask: Callable[[Path], T]) -> T:
        self._check_may_wait(name, path, lambda: getattr(self, name)(path))
        self._asks_for({"read": "read", "list_directory": "list"}.get(name, "stat"), path)
        with self.allow_waiting():
            return ask(path)


def what_lies_at(path: Path) -> str:
    """What kind of file or directory, for people: `.log`, `a partition`, a name that is fixed."""
    name = path.name.removesuffix(".tmp")
    segment = _SEGMENT.match(name)
    if segment:
        return name[segment.end() :].removesuffix(".deleted")
    try:
        parse_partition_directory(name)
    except ValueError:
        return name if path.suffix or "-" in name or name.startswith(".") else "a log directory"
    return "a partition"


def in_words(calls: Iterable[str]) -> str:
    """The calls as one line, each kind with all it is made of: `rename .index, .log; stat .log`."""
    by_kind: dict[str, list[str]] = {}
    for call in sorted(calls):
        kind, what = call.split(" ", 1)
        by_kind.setdefault(kind, []).append(what)
    return "; ".join(f"{kind} {', '.join(whats)}" for kind, whats in by_kind.items())


def calls_in(words: str) -> set[str]:
    """The calls that `in_words` has made one line of."""
    calls = set()
    for kinds in filter(None, words.split("; ")):
        kind, whats = kinds.split(" ", 1)
        calls |= {f"{kind} {what}" for what in whats.split(", ")}
    return calls
