"""Reads and writes at a position of a file. Windows lacks the system calls: a lock is held there.

The functions are the system's own where it has them.
"""

import os
import threading
from collections.abc import Callable, Sequence

Buffer = bytes | bytearray | memoryview

_lock = threading.Lock()  # between moving to the position and the call that uses it


def locked_pread(fd: int, size: int, position: int) -> bytes:
    """Read at most `size` bytes."""
    with _lock:
        os.lseek(fd, position, os.SEEK_SET)
        return os.read(fd, size)


def locked_preadv(fd: int, buffers: Sequence[bytearray | memoryview], position: int) -> int:
    """Read into the first buffer; return the number of bytes."""
    data = locked_pread(fd, len(buffers[0]), position)
    buffers[0][: len(data)] = data
    return len(data)


def locked_pwrite(fd: int, data: Buffer, position: int) -> int:
    """Write a part of `data`, at least a byte; return the number of bytes."""
    with _lock:
        os.lseek(fd, position, os.SEEK_SET)
        return os.write(fd, data)


def locked_pwritev(fd: int, buffers: Sequence[Buffer], position: int) -> int:
    """Write buffers one after the other, until a write is short; return the number of bytes."""
    written = 0
    for buffer in buffers:
        count = locked_pwrite(fd, buffer, position + written)
        written += count
        if count < len(buffer):
            break
    return written


# The functions of `os` cannot be assigned to their names: its stubs depend on the system.
pread: Callable[[int, int, int], bytes] = getattr(os, "pread", locked_pread)
preadv: Callable[[int, Sequence[bytearray | memoryview], int], int] = getattr(
    os, "preadv", locked_preadv
)
pwrite: Callable[[int, Buffer, int], int] = getattr(os, "pwrite", locked_pwrite)
pwritev: Callable[[int, Sequence[Buffer], int], int] = getattr(os, "pwritev", locked_pwritev)
