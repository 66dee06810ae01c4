"""The only door to the operating system: every read, write, sync and rename of the store.

A `Files` object is passed in wherever files are touched, so that tests can subclass it: drop what
was not synced, cut a write short, fail on the n-th call.

An open file closes when the last reference goes: a Fetch that is being sent keeps the file of a
segment that retention has deleted meanwhile, and nobody has to count. There is no close method, for
it would close the file under that Fetch.

Appends go to `append_position`, by pwritev, and only a whole write moves it. So a write that failed
half way leaves bytes behind the end which the next append overwrites; recovery cuts them after a
crash. Writes and truncations of one file come from one thread at a time; reads from any.

Work on the event loop that only looks something up runs inside `Attempt`: there a read never
waits for a disk. What is not in the page cache raises WouldWaitError instead; a disk thread then
makes the same call, and the whole look-up runs again. So a look-up must change nothing that a
second run would not change in the same way.

Errors are the operating system's OSError, with the path in it.
"""

import errno
import fcntl
import os
import shutil
import struct
import sys
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from threading import get_ident

from odradek.protocol.compression import Buffer

MAX_BUFFERS = 1024  # IOV_MAX
TEMPORARY_SUFFIX = ".tmp"
FILE_MODE = 0o644
READ_AHEAD_BYTES = 1 << 20
RWF_NOWAIT: int | None = getattr(os, "RWF_NOWAIT", None)  # Linux only


class LockHeldError(Exception):
    """Another process (odradek or Apache Kafka), or another broker of this one, holds the lock."""


class OpenFile:
    """A file descriptor with its path, closed when the last reference goes.

    `append_position` is where the next append lands; it starts at the file's length.
    """

    __slots__ = ("append_position", "fd", "path")

    def __init__(self, fd: int, path: Path, append_position: int) -> None:
        self.fd = fd
        self.path = path
        self.append_position = append_position

    def __del__(self) -> None:
        if self.fd >= 0:
            os.close(self.fd)

    def __repr__(self) -> str:
        return f"OpenFile({str(self.path)!r}, fd={self.fd}, {self.append_position} bytes)"


class WouldWaitError(Exception):
    """Reads would wait for a disk: `calls`, which any thread may make, by what they ask for."""

    def __init__(self, calls: Mapping[Hashable, Callable[[], object]]) -> None:
        super().__init__(f"these reads would wait for a disk: {list(calls)}")
        self.calls = calls


class Attempt:
    """A context in which reads of the thread that made it raise WouldWaitError instead of waiting.

    `made`: the calls that a disk thread has made for it already. They may be made again: what they
    ask for was in memory a moment ago.
    """

    __slots__ = ("_files", "_thread", "made", "waits")

    def __init__(self, files: "Files") -> None:
        self.made: set[Hashable] = set()
        self.waits = False  # see Files.patient
        self._files = files
        self._thread = get_ident()

    def __enter__(self) -> None:
        self._files.attempt = self

    def __exit__(self, *_: object) -> None:
        self._files.attempt = None

    def may_wait(self, key: Hashable) -> bool:
        """Whether that call may be made here and now."""
        return self.waits or key in self.made or get_ident() != self._thread


class FileLock:
    """A lock held until `release`, or until the process ends."""

    __slots__ = ("_file", "_was_there")

    def __init__(self, file: OpenFile, *, was_there: bool = False) -> None:
        self._file: OpenFile | None = file
        self._was_there = was_there

    def release(self, *, as_found: bool = False) -> None:
        """Delete the lock file, as Kafka does at shutdown, and let go. Twice is harmless.

        `as_found`: nothing came of it; a file that a killed process has left stays.
        """
        if self._file is not None:
            # Deleted while it is still locked: whoever waits for it must notice (see Files.lock).
            if not (as_found and self._was_there):
                self._file.path.unlink(missing_ok=True)
            self._file = None


class Files:
    """The file system, as the store uses it. Subclass it to inject faults."""

    attempt: Attempt | None = None  # the look-up that is under way on the event loop

    # --- open files

    def open(self, path: Path, *, create: bool = False, read_only: bool = False) -> OpenFile:
        """Open an existing file, or with `create` one that may be new."""
        if self.attempt is not None and not create:
            self._must_not_wait("open", path, lambda: self.open(path, read_only=read_only))
        flags = os.O_RDONLY if read_only else os.O_RDWR
        fd = os.open(path, flags | os.O_CLOEXEC | (os.O_CREAT if create else 0), FILE_MODE)
        file = OpenFile(fd, path, 0)
        file.append_position = os.fstat(fd).st_size
        return file

    def pread(self, file: OpenFile, size: int, position: int) -> bytes:
        """`size` bytes from `position`; fewer only at the end of the file."""
        attempt = self.attempt  # another thread's may end at any time
        if attempt is not None and not attempt.may_wait((file, size, position)):
            data = self.pread_cached(file, size, position)
            if data is None:
                call = partial(self.pread, file, size, position)
                raise WouldWaitError({(file, size, position): call})
            return data
        data = os.pread(file.fd, size, position)
        if len(data) == size or not data:
            return data
        parts = [data]
        missing, position = size - len(data), position + len(data)
        while missing and (data := os.pread(file.fd, missing, position)):
            parts.append(data)
            missing, position = missing - len(data), position + len(data)
        return b"".join(parts)

    def pread_cached(self, file: OpenFile, size: int, position: int) -> bytes | None:
        """As `pread`; None where a part of it is not in the page cache, if the system can tell."""
        if RWF_NOWAIT is None:
            return os.pread(file.fd, size, position)
        buffer, have = bytearray(size), 0
        try:
            while have < size:
                rest = memoryview(buffer)[have:] if have else buffer
                count = os.preadv(file.fd, (rest,), position + have, RWF_NOWAIT)
                if not count:
                    return bytes(buffer[:have])
                have += count
        except OSError as error:
            if error.errno == errno.EAGAIN:
                return None
            if error.errno != errno.EOPNOTSUPP:  # a file system without NOWAIT
                raise
            return os.pread(file.fd, size, position)
        return bytes(buffer)

    def _must_not_wait(self, name: str, path: Path, call: Callable[[], object]) -> None:
        """Raises WouldWaitError inside an attempt for which that call was not made yet."""
        attempt = self.attempt
        if attempt is not None and not attempt.may_wait((name, path)):
            raise WouldWaitError({(name, path): call})

    @contextmanager
    def patient(self) -> Iterator[None]:
        """Reads wait after all: for work inside an attempt that must not be broken off."""
        attempt = self.attempt
        if attempt is None or attempt.may_wait(None):
            yield
            return
        attempt.waits = True
        try:
            yield
        finally:
            attempt.waits = False

    def pread_exact(self, file: OpenFile, size: int, position: int) -> bytes:
        """`size` bytes from `position`. Raises EOFError where the file ends before."""
        data = self.pread(file, size, position)
        if len(data) != size:
            raise EOFError(f"{file.path} ends at {position + len(data)}, wanted {position + size}")
        return data

    def is_cached(self, file: OpenFile, size: int, position: int) -> bool:
        """Whether the first and the last page of that range can be read without waiting for a disk.

        True as well where the system cannot tell.
        """
        if RWF_NOWAIT is None:
            return True
        byte = [bytearray(1)]
        try:
            os.preadv(file.fd, byte, position, RWF_NOWAIT)
            os.preadv(file.fd, byte, position + max(size - 1, 0), RWF_NOWAIT)
        except OSError as error:
            # EAGAIN: not in the page cache. A file system without NOWAIT says EOPNOTSUPP.
            return error.errno != errno.EAGAIN
        return True

    def read_ahead(self, file: OpenFile, size: int, position: int) -> None:
        """Bring that range into the page cache. Waits for the disk: not on the event loop."""
        while size > 0 and (data := os.pread(file.fd, min(size, READ_AHEAD_BYTES), position)):
            size, position = size - len(data), position + len(data)

    def append(self, file: OpenFile, buffers: Sequence[Buffer]) -> int:
        """Write all buffers behind each other at the append position; returns the number of bytes.

        On an error the append position stays: the file may have grown, the log has not.
        """
        position = file.append_position
        size = sum(map(len, buffers))
        written = self._writev(file, buffers[:MAX_BUFFERS], position)
        if written != size:
            self._write_rest(file, buffers, written)
        file.append_position = position + size
        return size

    def _writev(self, file: OpenFile, buffers: Sequence[Buffer], position: int) -> int:
        return os.pwritev(file.fd, buffers, position)

    def _write_rest(self, file: OpenFile, buffers: Sequence[Buffer], written: int) -> None:
        position = file.append_position
        while left := buffers_after(buffers, written):
            count = self._writev(file, left[:MAX_BUFFERS], position + written)
            if count == 0:
                raise OSError(f"{file.path}: nothing could be written at {position + written}")
            written += count

    def pwrite(self, file: OpenFile, data: Buffer, position: int) -> None:
        """Write `data` at `position`; the append position stays where it is."""
        view = memoryview(data)
        while view:
            count = os.pwrite(file.fd, view, position)
            view, position = view[count:], position + count

    def truncate(self, file: OpenFile, size: int) -> None:
        """Cut the file to `size` bytes (or grow it by a hole), and append from there."""
        os.ftruncate(file.fd, size)
        file.append_position = size

    def preallocate(self, file: OpenFile, size: int) -> None:
        """Give the file this length, a hole where it grows; the append position stays."""
        os.ftruncate(file.fd, size)

    def copy_range(self, source: OpenFile, target: OpenFile, size: int, position: int) -> None:
        """Put `size` bytes of `source` at the same position of `target`, inside the kernel.

        Where that cannot be (two kinds of file systems), in pieces through memory: no Python runs
        while bytes are on their way. Raises OSError, also where `source` ends before; its filename
        says which of the two has failed.
        """
        while size:
            count = _copy_in_kernel(source.fd, target.fd, size, position)
            if not count:
                with _naming(source.path):
                    piece = self.pread_exact(source, min(size, READ_AHEAD_BYTES), position)
                with _naming(target.path):
                    self.pwrite(target, piece, position)
                count = len(piece)
            size, position = size - count, position + count

    def fsync(self, file: OpenFile) -> None:
        os.fsync(file.fd)

    # --- whole files

    def read(self, path: Path) -> bytes:
        """The content. Raises FileNotFoundError."""
        if self.attempt is not None:
            self._must_not_wait("read", path, partial(self.read, path))
        return path.read_bytes()

    def atomic_write(self, path: Path, data: Buffer, *, sync: bool = True) -> None:
        """Replace `path` by a file with this content: whoever looks sees the old one or the new.

        As Kafka does it: path.tmp, fsync, rename, fsync of the directory. Without `sync` a power
        cut may bring back the old content, or an empty file.
        """
        temporary = path.with_name(path.name + TEMPORARY_SUFFIX)
        self.write(temporary, data, sync=sync)
        self.rename(temporary, path)
        if sync:
            self.fsync_directory(path.parent)

    def write(self, path: Path, data: Buffer, *, sync: bool = True) -> None:
        """Make (or overwrite) a file with this content; a crash may leave half of it."""
        file = self.open(path, create=True)
        self.truncate(file, 0)
        self.append(file, [data])
        if sync:
            self.fsync(file)

    # --- names

    def rename(self, source: Path, target: Path) -> None:
        """Atomically, over an existing target. Does not sync the directory."""
        source.replace(target)

    def link(self, source: Path, target: Path) -> None:
        """Give a file a second name, atomically. Raises FileExistsError for one that is taken."""
        target.hardlink_to(source)

    def remove(self, path: Path) -> None:
        """Delete a file; one that is not there is fine."""
        path.unlink(missing_ok=True)

    def remove_tree(self, directory: Path) -> None:
        """Delete a directory with all it holds; one that is not there is fine."""
        with suppress(FileNotFoundError):
            shutil.rmtree(directory)

    def make_directory(self, path: Path) -> None:
        """Also its parents; an existing one is fine."""
        path.mkdir(parents=True, exist_ok=True)

    def make_read_only(self, path: Path) -> None:
        """Nobody may write to the file from now on."""
        path.chmod(0o444)

    def set_modified_ms(self, path: Path, modified_ms: int) -> None:
        """Pretend that the file was last written then."""
        os.utime(path, ns=(modified_ms * 1_000_000, modified_ms * 1_000_000))

    def fsync_directory(self, path: Path) -> None:
        """Make what was created, renamed or deleted in it survive a power cut."""
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)

    # --- questions

    def list_directory(self, directory: Path) -> list[str]:
        """The names in it, sorted."""
        if self.attempt is not None:
            self._must_not_wait(
                "list_directory", directory, partial(self.list_directory, directory)
            )
        return sorted(path.name for path in directory.iterdir())

    def exists(self, path: Path) -> bool:
        if self.attempt is not None:
            self._must_not_wait("exists", path, partial(self.exists, path))
        return path.exists()

    def is_directory(self, path: Path) -> bool:
        return path.is_dir()

    def size(self, path: Path) -> int:
        """In bytes. Raises FileNotFoundError."""
        if self.attempt is not None:
            self._must_not_wait("size", path, partial(self.size, path))
        return path.stat().st_size

    def modified_ms(self, path: Path) -> int:
        """When it was last written. Raises FileNotFoundError."""
        if self.attempt is not None:
            self._must_not_wait("modified_ms", path, partial(self.modified_ms, path))
        return path.stat().st_mtime_ns // 1_000_000

    def free_bytes(self, directory: Path) -> int:
        """What an unprivileged process may still write to that file system."""
        status = os.statvfs(directory)
        return status.f_bavail * status.f_frsize

    def total_bytes(self, directory: Path) -> int:
        """The size of that file system."""
        status = os.statvfs(directory)
        return status.f_blocks * status.f_frsize

    # --- lock

    def lock(self, path: Path) -> FileLock:
        """Lock `path` (made if missing) against other processes and other holders in this one.

        Apache Kafka (Java's FileChannel.tryLock) takes a POSIX record lock; ours conflicts with it.
        Raises LockHeldError.
        """
        while True:
            was_there = self.exists(path)
            file = self.open(path, create=True)
            _lock_whole_file(file)
            # The holder before us may have deleted the file between our open and our lock; then
            # this lock is on a file without a name, and the next one would lock a new file.
            with suppress(FileNotFoundError):
                if path.stat().st_ino == os.fstat(file.fd).st_ino:
                    return FileLock(file, was_there=was_there)

    def is_locked(self, path: Path) -> bool:
        """Whether somebody holds that lock; asks without taking it. A missing file is not locked.

        Where the system can tell of nobody but by taking it, False.
        """
        if sys.platform != "linux" or not self.exists(path):
            return False
        file = self.open(path, read_only=True)
        whole_file = struct.pack("hhqqi4x", fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)
        answer = fcntl.fcntl(file.fd, fcntl.F_OFD_GETLK, whole_file)
        return bool(struct.unpack_from("h", answer)[0] != fcntl.F_UNLCK)


def buffers_after(buffers: Sequence[Buffer], written: int) -> list[Buffer]:
    """What is left of `buffers` once their first `written` bytes have gone."""
    left: list[Buffer] = []
    for buffer in buffers:
        if written >= len(buffer):
            written -= len(buffer)
        else:
            left.append(memoryview(buffer)[written:])
            written = 0
    return left


def _copy_in_kernel(source: int, target: int, size: int, position: int) -> int:
    """How many bytes were copied; 0 where it did not work, for whatever reason."""
    if sys.platform == "linux":
        with suppress(OSError):
            return os.copy_file_range(source, target, size, position, position)
    return 0


@contextmanager
def _naming(path: Path) -> Iterator[None]:
    """Errors of file descriptors get the path of the file."""
    try:
        yield
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from error
    except EOFError as error:
        raise OSError(errno.EIO, str(error), str(path)) from error


def _lock_whole_file(file: OpenFile) -> None:
    try:
        if sys.platform == "linux":
            # A plain POSIX lock belongs to the process: two brokers in one process would not see
            # each other, and closing any descriptor of the file would drop it. One that belongs to
            # the open file description has neither flaw, and conflicts with Java's all the same.
            whole_file = struct.pack("hhqqi4x", fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)
            fcntl.fcntl(file.fd, fcntl.F_OFD_SETLK, whole_file)
        else:
            fcntl.lockf(file.fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError):
        raise LockHeldError(f"{file.path} is locked") from None
