"""File access for the store: every read, write, sync and rename goes through a `Files` object.

The `Files` object is passed to all code that uses files. Tests pass a subclass that drops unsynced
data, cuts a write short, or fails at the n-th call.

An open file is closed when its last reference is dropped. A Fetch response that is being sent keeps
the file of a segment open that retention has deleted in the meantime. There is no close method,
because it would close the file while that response is being sent.

Appends write at `append_position` with pwritev, and only a complete write moves that position. A
write that failed half way leaves bytes after the end of the log. The next append overwrites them;
after a crash, recovery truncates them. Only one thread at a time may write to or truncate a file;
any thread may read.

Lookups on the event loop run inside a `NonBlockingReads` context, where a read never waits for the
disk. A read of data that is not in the page cache raises WouldWaitError. A disk thread then makes
the same call, and the whole lookup is run again. A lookup must therefore be idempotent.

Errors are OSError, as the operating system reports them, with the path.
"""

import errno
import os
import struct
import sys
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from io import FileIO
from pathlib import Path
from threading import get_ident
from typing import NamedTuple

from odradek.protocol.compression import Buffer

from .positioned import pread, pwrite, pwritev
from .process_limits import descriptor_limits

with suppress(ImportError):  # Windows has none
    import fcntl

MAX_BUFFERS = 1024  # IOV_MAX
TEMPORARY_SUFFIX = ".tmp"
FILE_MODE = 0o644
READ_AHEAD_BYTES = 1 << 20
RWF_NOWAIT: int | None = getattr(os, "RWF_NOWAIT", None)  # Linux only


# Windows: the bytes as they are. Elsewhere: other processes do not inherit the file.
OPEN_FLAGS: int = getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0)
TOO_MANY_FILES = "Too many open files (raise ulimit -n, or LimitNOFILE of the service)"
# Of the descriptors that the process may have, this part is left to connections.
MAX_DESCRIPTORS_FOR_CONNECTIONS = 1000


def descriptors_for_files() -> int:
    """How many descriptors the files that stay open may use: three quarters, or all but 1000."""
    limit, _ = descriptor_limits()
    return limit - min(limit // 4, MAX_DESCRIPTORS_FOR_CONNECTIONS)


class LockHeldError(Exception):
    """Another process (odradek or Apache Kafka), or another broker of this one, holds the lock."""


class OpenFile:
    """A file descriptor with its path, closed when the last reference is dropped.

    `append_position` is where the next append writes; initially the length of the file.
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


class Walk(NamedTuple):
    """`walk(data, limits=...)`, where `data` are bytes of a file, see record_walk.py."""

    file: OpenFile
    size: int
    position: int
    walk: Callable[..., object]


NO_WALKS: Mapping[Hashable, Walk] = {}


class WouldWaitError(Exception):
    """Reads would wait for the disk, or walks of records would take long.

    `calls` are those reads, by a key of what they read. Any thread may make them. `walks` are for
    another process. The caller needs their results, by their keys.
    """

    def __init__(
        self,
        calls: Mapping[Hashable, Callable[[], object]],
        walks: Mapping[Hashable, Walk] = NO_WALKS,
    ) -> None:
        super().__init__(f"would wait for reads {list(calls)} and walks {list(walks)}")
        self.calls = calls
        self.walks = walks


def combine(errors: Iterable[WouldWaitError]) -> WouldWaitError:
    """Combine what several lookups lack."""
    calls: dict[Hashable, Callable[[], object]] = {}
    walks: dict[Hashable, Walk] = {}
    for error in errors:
        calls |= error.calls
        walks |= error.walks
    return WouldWaitError(calls, walks)


class NonBlockingReads:
    """A context in which reads raise WouldWaitError instead of waiting for the disk.

    It applies to the thread that created it. `made` are the keys of calls that a disk thread has
    already made for it. They are allowed, because what they read was in memory a moment ago. They
    name files by path, because a reference would keep a file open.
    `results` are what walks have returned or raised, by their keys.
    """

    __slots__ = ("_files", "_thread", "made", "may_block", "results")

    def __init__(self, files: "Files") -> None:
        self.made: set[Hashable] = set()
        self.results: dict[Hashable, object] = {}
        self.may_block = False  # see Files.allow_waiting
        self._files = files
        self._thread = get_ident()

    def __enter__(self) -> None:
        self._files.nonblocking = self

    def __exit__(self, *_: object) -> None:
        self._files.nonblocking = None

    def may_wait(self, key: Hashable) -> bool:
        """Whether the call with that key may be made now, on this thread."""
        if self.may_block or get_ident() != self._thread:
            return True
        return bool(self.made) and key in self.made  # to hash the path of a key takes time


class FileLock:
    """A lock held until `release`, or until the process ends."""

    __slots__ = ("_existed", "_file")

    def __init__(self, file: OpenFile, *, existed: bool = False) -> None:
        self._file: OpenFile | None = file
        self._existed = existed

    def release(self, *, as_found: bool = False) -> None:
        """Delete the lock file, as Kafka does at shutdown, and unlock. May be called twice.

        `as_found`: keep the lock file if it existed before, because startup failed and a killed
        process may have left it.
        """
        if self._file is not None:
            # Deleted while still locked: a process that waits for the lock then notices that the
            # file is gone (see Files.lock).
            if not (as_found and self._existed):
                with suppress(
                    OSError
                ):  # the directory may have failed: it is unlocked all the same
                    self._file.path.unlink(missing_ok=True)
            self._file = None


class Files:
    """The file system operations of the store. Tests subclass it to inject faults."""

    nonblocking: NonBlockingReads | None = None  # of the lookup that is running on the event loop
    # Files that stay open get descriptors below this number. The system gives the lowest that is
    # free, so a broker leaves the others to connections, pipes, and files that are closed at once.
    descriptor_limit = sys.maxsize
    # How many files of segments have been opened to be read, or have stayed open after a roll,
    # since LogManager last closed the files of inactive segments.
    opened_by_segments = 0

    # --- open files

    def open(self, path: Path, *, create: bool = False, read_only: bool = False) -> OpenFile:
        """Open an existing file; with `create`, create it if it does not exist."""
        if self.nonblocking is not None and not create:
            self._check_may_wait("open", path, lambda: self.open(path, read_only=read_only))
        flags = os.O_RDONLY if read_only else os.O_RDWR
        fd = os.open(path, flags | OPEN_FLAGS | (os.O_CREAT if create else 0), FILE_MODE)
        if fd >= self.descriptor_limit:
            os.close(fd)
            raise OSError(errno.EMFILE, TOO_MANY_FILES, str(path))
        file = OpenFile(fd, path, 0)
        file.append_position = os.fstat(fd).st_size
        return file

    def free_descriptors(self) -> int:
        """How many more files may stay open."""
        return self.descriptor_limit - self.open_descriptors()

    def open_descriptors(self) -> int:
        """How many files and sockets this process has open."""
        try:
            count = os.stat("/proc/self/fd").st_size  # noqa: PTH116 # since Linux 6.2; else 0
        except OSError:
            count = 0
        return count or len(os.listdir("/dev/fd"))  # noqa: PTH208 # no paths wanted

    def pread(self, file: OpenFile, size: int, position: int) -> bytes:
        """Read `size` bytes from `position`; fewer only at the end of the file."""
        reads = self.nonblocking  # read once: another thread may reset it
        if reads is not None and not reads.may_wait((file.path, size, position)):
            data = self.pread_cached(file, size, position)
            if data is None:
                call = partial(self.pread, file, size, position)
                raise WouldWaitError({(file.path, size, position): call})
            return data
        data = pread(file.fd, size, position)
        if len(data) == size or not data:
            return data
        parts = [data]
        missing, position = size - len(data), position + len(data)
        while missing and (data := pread(file.fd, missing, position)):
            parts.append(data)
            missing, position = missing - len(data), position + len(data)
        return b"".join(parts)

    def pread_cached(self, file: OpenFile, size: int, position: int) -> bytes | None:
        """Like `pread`, but None if a part is not in the page cache and the system can tell."""
        if RWF_NOWAIT is None:
            return pread(file.fd, size, position)
        buffer, read = bytearray(size), 0
        try:
            while read < size:
                rest = memoryview(buffer)[read:] if read else buffer
                count = os.preadv(file.fd, (rest,), position + read, RWF_NOWAIT)
                if not count:
                    return bytes(buffer[:read])
                read += count
        except OSError as error:
            if error.errno == errno.EAGAIN:
                return None
            if error.errno != errno.EOPNOTSUPP:  # a file system without NOWAIT
                raise
            return pread(file.fd, size, position)
        return bytes(buffer)

    def _check_may_wait(self, name: str, path: Path, call: Callable[[], object]) -> None:
        """Raise WouldWaitError inside NonBlockingReads, unless the call was made for it."""
        reads = self.nonblocking
        if reads is not None and not reads.may_wait((name, path)):
            raise WouldWaitError({(name, path): call})

    @contextmanager
    def allow_waiting(self) -> Iterator[None]:
        """Let reads inside NonBlockingReads wait, for work that must not be interrupted."""
        reads = self.nonblocking
        if reads is None or reads.may_wait(None):
            yield
            return
        reads.may_block = True
        try:
            yield
        finally:
            reads.may_block = False

    def pread_exact(self, file: OpenFile, size: int, position: int) -> bytes:
        """Read `size` bytes from `position`. Raises EOFError if the file ends before."""
        data = self.pread(file, size, position)
        if len(data) != size:
            raise EOFError(f"{file.path} ends at {position + len(data)}, wanted {position + size}")
        return data

    def is_zero_from(self, file: OpenFile, position: int) -> bool:
        """Whether the rest of the file is zeros. Holes are not read where the system knows them."""
        zeros = bytes(READ_AHEAD_BYTES)
        while True:
            if hasattr(os, "SEEK_DATA"):
                try:
                    position = os.lseek(file.fd, position, os.SEEK_DATA)
                except OSError as error:
                    if error.errno == errno.ENXIO:  # no data after it
                        return True
            data = self.pread(file, READ_AHEAD_BYTES, position)
            if not zeros.startswith(data):
                return False
            if not data:
                return True
            position += len(data)

    def is_cached(self, file: OpenFile, size: int, position: int) -> bool:
        """Whether the first and the last page of that range are in the page cache.

        Returns True as well if the system cannot tell.
        """
        if RWF_NOWAIT is None:
            return True
        byte = [bytearray(1)]
        try:
            os.preadv(file.fd, byte, position, RWF_NOWAIT)
            os.preadv(file.fd, byte, position + max(size - 1, 0), RWF_NOWAIT)
        except OSError as error:
            # EAGAIN: not in the page cache. A file system without NOWAIT returns EOPNOTSUPP.
            return error.errno != errno.EAGAIN
        return True

    def read_ahead(self, file: OpenFile, size: int, position: int) -> None:
        """Read that range into the page cache. Waits for the disk: not for the event loop."""
        while size > 0 and (data := pread(file.fd, min(size, READ_AHEAD_BYTES), position)):
            size, position = size - len(data), position + len(data)

    def append(self, file: OpenFile, buffers: Sequence[Buffer]) -> int:
        """Write all buffers one after the other at the append position; return the number of bytes.

        On an error the append position does not move, although the file may have grown.
        """
        position = file.append_position
        if len(buffers) == 1:  # a hot path
            size = len(buffers[0])
            written = self._writev(file, buffers, position)
        else:
            size = sum(map(len, buffers))
            written = self._writev(file, buffers[:MAX_BUFFERS], position)
        if written != size:
            self._write_rest(file, buffers, written)
        file.append_position = position + size
        return size

    def _writev(self, file: OpenFile, buffers: Sequence[Buffer], position: int) -> int:
        return pwritev(file.fd, buffers, position)

    def _write_rest(self, file: OpenFile, buffers: Sequence[Buffer], written: int) -> None:
        position = file.append_position
        while left := buffers_after(buffers, written):
            count = self._writev(file, left[:MAX_BUFFERS], position + written)
            if count == 0:
                raise OSError(f"{file.path}: nothing could be written at {position + written}")
            written += count

    def pwrite(self, file: OpenFile, data: Buffer, position: int) -> None:
        """Write `data` at `position`; the append position does not move."""
        view = memoryview(data)
        while view:
            count = pwrite(file.fd, view, position)
            view, position = view[count:], position + count

    def truncate(self, file: OpenFile, size: int) -> None:
        """Truncate the file to `size` bytes (or extend it by a hole); appends continue there."""
        os.ftruncate(file.fd, size)
        file.append_position = size

    def preallocate(self, file: OpenFile, size: int) -> None:
        """Set the length of the file, growing by a hole; the append position does not move."""
        os.ftruncate(file.fd, size)

    def copy_range(self, source: OpenFile, target: OpenFile, size: int, position: int) -> None:
        """Copy `size` bytes of `source` to the same position of `target`, inside the kernel.

        Falls back to copying pieces through memory where the kernel cannot do it, for example
        between different file systems. Raises OSError, also if `source` is too short; its filename
        says which of the two files failed.
        """
        while size:
            count = _copy_in_kernel(source.fd, target.fd, size, position)
            if not count:
                with _with_path_in_errors(source.path):
                    piece = self.pread_exact(source, min(size, READ_AHEAD_BYTES), position)
                with _with_path_in_errors(target.path):
                    self.pwrite(target, piece, position)
                count = len(piece)
            size, position = size - count, position + count

    def fsync(self, file: OpenFile) -> None:
        os.fsync(file.fd)

    # --- whole files

    def read(self, path: Path) -> bytes:
        """Read the whole file. Raises FileNotFoundError."""
        if self.nonblocking is not None:
            self._check_may_wait("read", path, partial(self.read, path))
        with FileIO(path) as file:  # `path.read_bytes` takes twice as long for a small file
            return file.readall()

    def atomic_write(self, path: Path, data: Buffer, *, sync: bool = True) -> None:
        """Replace the content of `path`: readers see the old content or the new, nothing between.

        The steps are Kafka's: write path.tmp, fsync, rename, fsync of the directory. Without `sync`
        a power cut may bring back the old content, or leave an empty file.
        """
        temporary = path.with_name(path.name + TEMPORARY_SUFFIX)
        self.write(temporary, data, sync=sync)
        self.rename(temporary, path)
        if sync:
            self.fsync_directory(path.parent)

    def write(self, path: Path, data: Buffer, *, sync: bool = True) -> None:
        """Create or overwrite a file; a crash may leave a part of the content."""
        file = self.open(path, create=True)
        self.truncate(file, 0)
        self.append(file, [data])
        if sync:
            self.fsync(file)

    # --- names

    def rename(self, source: Path, target: Path) -> None:
        """Rename atomically, replacing an existing target. Does not sync the directory."""
        source.replace(target)

    def remove(self, path: Path) -> None:
        """Delete a file if it exists."""
        path.unlink(missing_ok=True)

    def remove_tree(self, directory: Path) -> None:
        """Delete a directory and its content if it exists."""
        import shutil  # imports three codecs: a start that deletes nothing need not wait for them

        with suppress(FileNotFoundError):
            shutil.rmtree(directory)

    def make_directory(self, path: Path) -> None:
        """Create a directory and its parents if they do not exist."""
        path.mkdir(parents=True, exist_ok=True)

    def make_private(self, directory: Path) -> None:
        """Take the permissions of everyone except the owner away."""
        directory.chmod(0o700)

    def make_read_only(self, path: Path) -> None:
        """Remove write permission from the file."""
        path.chmod(0o444)

    def set_modified_ms(self, path: Path, modified_ms: int) -> None:
        """Set the modification time of the file."""
        os.utime(path, ns=(modified_ms * 1_000_000, modified_ms * 1_000_000))

    def fsync_directory(self, path: Path) -> None:
        """Sync the names in it, so that creations, renames and deletions survive a power cut."""
        if os.name == "nt":
            return  # Windows opens no directories, and syncs names by itself
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)

    # --- metadata

    def list_directory(self, directory: Path) -> list[str]:
        """The names in the directory, sorted."""
        if self.nonblocking is not None:
            self._check_may_wait(
                "list_directory", directory, partial(self.list_directory, directory)
            )
        return sorted(os.listdir(directory))  # noqa: PTH208 # a path for each name takes longer

    def exists(self, path: Path) -> bool:
        if self.nonblocking is not None:
            self._check_may_wait("exists", path, partial(self.exists, path))
        return path.exists()

    def is_directory(self, path: Path) -> bool:
        return path.is_dir()

    def size(self, path: Path) -> int:
        """The size of a file in bytes. Raises FileNotFoundError."""
        if self.nonblocking is not None:
            self._check_may_wait("size", path, partial(self.size, path))
        return path.stat().st_size

    def modified_ms(self, path: Path) -> int:
        """The modification time. Raises FileNotFoundError."""
        if self.nonblocking is not None:
            self._check_may_wait("modified_ms", path, partial(self.modified_ms, path))
        return path.stat().st_mtime_ns // 1_000_000

    def free_bytes(self, directory: Path) -> int:
        """The free space of that file system for an unprivileged process; 0 if no file fits in."""
        if not hasattr(os, "statvfs"):  # Windows
            import shutil

            return shutil.disk_usage(directory).free
        status = os.statvfs(directory)
        if status.f_files and not status.f_favail:
            return 0  # some file systems have no limit of files: f_files is 0
        return status.f_bavail * status.f_frsize

    def total_bytes(self, directory: Path) -> int:
        """The size of that file system."""
        if not hasattr(os, "statvfs"):  # Windows
            import shutil

            return shutil.disk_usage(directory).total
        status = os.statvfs(directory)
        return status.f_blocks * status.f_frsize

    # --- lock

    def lock(self, path: Path) -> FileLock:
        """Lock `path`, created if missing, against other processes and other locks of this one.

        Apache Kafka (Java's FileChannel.tryLock) takes a POSIX record lock, which conflicts with
        this lock. Raises LockHeldError.
        """
        while True:
            existed = self.exists(path)
            file = self.open(path, create=True)
            _lock_whole_file(file)
            # The previous holder may have deleted the file after it was opened here and before it
            # was locked. Then this lock is on a file without a name, and another process could lock
            # a new file of that name. So try again.
            with suppress(FileNotFoundError):
                if path.stat().st_ino == os.fstat(file.fd).st_ino:
                    return FileLock(file, existed=existed)

    def is_locked(self, path: Path) -> bool:
        """Whether the lock is held, tested without taking it. A missing file is not locked.

        Returns False on systems other than Linux, which can test a lock only by taking it.
        """
        if sys.platform != "linux":
            return False
        try:
            file = self.open(path, read_only=True)
        except FileNotFoundError:
            return False
        answer = fcntl.fcntl(file.fd, fcntl.F_OFD_GETLK, _whole_file())
        return bool(struct.unpack_from("h", answer)[0] != fcntl.F_UNLCK)


def buffers_after(buffers: Sequence[Buffer], written: int) -> list[Buffer]:
    """The part of `buffers` after the first `written` bytes."""
    left: list[Buffer] = []
    for buffer in buffers:
        if written >= len(buffer):
            written -= len(buffer)
        else:
            left.append(memoryview(buffer)[written:])
            written = 0
    return left


def _copy_in_kernel(source: int, target: int, size: int, position: int) -> int:
    """Copy a range; return the number of bytes copied, 0 if the kernel could not."""
    if sys.platform == "linux":
        with suppress(OSError):
            return os.copy_file_range(source, target, size, position, position)
    return 0


@contextmanager
def _with_path_in_errors(path: Path) -> Iterator[None]:
    """Add the path of the file to errors of calls that use its descriptor."""
    try:
        yield
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from error
    except EOFError as error:
        raise OSError(errno.EIO, str(error), str(path)) from error


def _whole_file() -> bytes:
    """Linux: struct flock."""
    return struct.pack("hhqqi4x", fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)


def _lock_whole_file(file: OpenFile) -> None:
    try:
        if sys.platform == "linux":
            # A plain POSIX lock belongs to the process: two brokers in one process could both take
            # it, and closing any descriptor of the file would release it. A lock of the open file
            # description avoids both, and it still conflicts with Java's lock.
            fcntl.fcntl(file.fd, fcntl.F_OFD_SETLK, _whole_file())
        elif sys.platform == "win32":
            import msvcrt  # no other system has it

            msvcrt.locking(file.fd, msvcrt.LK_NBLCK, 1)
        else:
            fcntl.lockf(file.fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError):
        raise LockHeldError(f"{file.path} is locked") from None
